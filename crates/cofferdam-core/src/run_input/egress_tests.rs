use super::super::InputSyntax;
use super::super::choice::choose;
use super::super::policy::policy_of;
use super::*;
use crate::settings::Effective;

fn network(overrides: &RunOverrides, is_agent: bool) -> Result<Network, String> {
    let settings = Effective::default();
    let choice = choose(overrides, &settings).map_err(|error| error.problem + "; " + &error.hint)?;
    network_of(overrides, &choice, is_agent).map_err(|error| error.problem + "; " + &error.hint)
}

fn allow_npm() -> RunOverrides {
    RunOverrides { allow: vec!["npm".parse().unwrap()], ..RunOverrides::default() }
}

#[test]
fn an_agent_is_sealed_and_a_plain_command_has_no_network() {
    assert_eq!(network(&RunOverrides::default(), true), Ok(Network::Sealed));
    assert_eq!(network(&RunOverrides::default(), false), Ok(Network::None));
    assert_eq!(network(&allow_npm(), false), Ok(Network::Sealed));
}

#[test]
fn what_only_the_broker_gives_is_refused_without_it() {
    let open = RunOverrides { network: Some(Network::Open), ..allow_npm() };
    assert!(network(&open, true).unwrap_err().contains("--allow works with --network sealed only"));
    let none = RunOverrides { network: Some(Network::None), ..RunOverrides::default() };
    assert!(network(&none, true).unwrap_err().contains("its model"));
    let on_the_host =
        RunOverrides { network: Some(Network::Sealed), mode: Some(Mode::Host), ..RunOverrides::default() };
    assert!(network(&on_the_host, true).unwrap_err().contains("cannot close the network"));
}

#[test]
fn an_error_names_the_field_as_the_caller_wrote_it() {
    let overrides = RunOverrides { syntax: InputSyntax::Fields, network: Some(Network::Open), ..allow_npm() };
    let error = network(&overrides, true).unwrap_err();
    assert!(error.contains("options.allow works") && error.contains("`\"network\": \"sealed\"`"), "{error}");
    assert!(!error.contains("--"), "{error}");
}

#[test]
fn a_set_of_the_settings_comes_before_a_preset_of_its_name() {
    let settings = EgressSettings {
        sets: [("npm".to_owned(), vec!["npm.corp.example:8443".parse().unwrap()])].into(),
        ..EgressSettings::default()
    };
    assert_eq!(allow_rules("npm", &settings).unwrap(), settings.sets["npm"]);
    assert!(allow_rules("crates", &settings).unwrap().len() > 1);
    assert_eq!(allow_rules("a.example:1", &settings).unwrap(), ["a.example:1".parse().unwrap()]);
    assert!(allow_rules("nonsense", &settings).is_err());
}

#[test]
fn a_forward_has_a_port_that_the_agent_may_listen_on_and_a_target() {
    use crate::egress::Forward;
    let good: Forward = "5432=db.example:5432".parse().unwrap();
    assert_eq!(good.target, "db.example:5432".parse().unwrap());
    for bad in ["5432", "80=a:1", "3128=a:1", "x=a:1", "5432=a", "5432=", "=a:1", "70000=a:1"] {
        assert!(bad.parse::<Forward>().is_err(), "{bad}");
    }
    let forwards = ["5432=a:1", "5432=b:1"].map(|text| text.parse().unwrap()).to_vec();
    let overrides = RunOverrides { forwards, ..RunOverrides::default() };
    let settings = Effective::default();
    let choice = choose(&overrides, &settings).unwrap();
    let policy = policy_of(&overrides, &choice, &settings.settings, false, Vec::new());
    assert!(policy.unwrap_err().problem.contains("port 5432 is given twice"));
}
