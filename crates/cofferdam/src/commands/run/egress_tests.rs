use cofferdam_core::Effective;

use super::super::choice::choose;
use super::*;

fn args(change: impl FnOnce(&mut RunArgs)) -> RunArgs {
    let mut args = RunArgs::default();
    change(&mut args);
    args
}

fn network(change: impl FnOnce(&mut RunArgs), is_agent: bool) -> Result<Network, String> {
    let args = args(change);
    let settings = Effective::default();
    let choice = choose(&args, &settings).map_err(|error| error.to_string())?;
    network_from(&args, &choice, is_agent).map_err(|error| error.to_string())
}

#[test]
fn an_agent_is_sealed_and_a_plain_command_has_no_network() {
    assert_eq!(network(|_| {}, true), Ok(Network::Sealed));
    assert_eq!(network(|_| {}, false), Ok(Network::None));
    assert_eq!(network(|args| args.allow.push("npm".into()), false), Ok(Network::Sealed));
}

#[test]
fn what_only_the_broker_gives_is_refused_without_it() {
    let asked = |args: &mut RunArgs| {
        args.allow.push("npm".into());
        args.network = Some("open".into());
    };
    assert!(network(asked, true).unwrap_err().contains("--allow works with --network sealed only"));
    assert!(network(|args| args.network = Some("none".into()), true).unwrap_err().contains("its model"));
    let on_the_host = |args: &mut RunArgs| {
        args.network = Some("sealed".into());
        args.mode = Some("host".into());
    };
    assert!(network(on_the_host, true).unwrap_err().contains("cannot close the network"));
}

#[test]
fn a_set_of_the_settings_comes_before_a_preset_of_its_name() {
    let settings = EgressSettings {
        sets: [("npm".to_owned(), vec!["npm.corp.example:8443".parse().unwrap()])].into(),
        ..EgressSettings::default()
    };
    assert_eq!(rules("npm", &settings).unwrap(), settings.sets["npm"]);
    assert!(rules("crates", &settings).unwrap().len() > 1);
    assert_eq!(rules("a.example:1", &settings).unwrap(), ["a.example:1".parse().unwrap()]);
    assert!(rules("nonsense", &settings).is_err());
}

#[test]
fn a_forward_has_a_port_that_the_agent_may_listen_on_and_a_target() {
    assert_eq!(forward("5432=db.example:5432").unwrap().target, "db.example:5432".parse().unwrap());
    for bad in ["5432", "80=a:1", "3128=a:1", "x=a:1", "5432=a", "5432=", "=a:1", "70000=a:1"] {
        assert!(forward(bad).is_err(), "{bad}");
    }
    let twice = args(|args| args.forward = vec!["5432=a:1".into(), "5432=b:1".into()]);
    let settings = Effective::default();
    let choice = choose(&twice, &settings).unwrap();
    assert!(egress_from(&twice, &choice, Network::Sealed, &EgressSettings::default(), false).is_err());
}

#[test]
fn a_branch_is_a_plain_name() {
    assert_eq!(branch("fix/login-2").unwrap(), "fix/login-2");
    for bad in ["", "-f", "a b", "+main", "a:b", "refs/heads/x", "a..b", "x.lock", "a~1"] {
        assert!(branch(bad).is_err(), "{bad}");
    }
}

#[test]
fn money_is_read_exactly() {
    assert_eq!(micro_usd("2.50"), Ok(2_500_000));
    assert_eq!(micro_usd(".000001"), Ok(1));
    assert_eq!(micro_usd("3"), Ok(3_000_000));
    for bad in ["", ".", "0", "0.0000001", "-1", "1e3", "1,5", "$2", "99999999999999999999"] {
        assert!(micro_usd(bad).is_err(), "{bad}");
    }
}
