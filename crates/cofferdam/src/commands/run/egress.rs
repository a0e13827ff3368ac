//! What a run may reach and spend: `--network`, `--allow`, `--forward`, `--push` and the budgets.

use cofferdam_core::{
    AllowEntry, AllowRule, BranchName, Budget, EgressPolicy, EgressSettings, Forward, Mode, Network,
    ValueError, gateway, preset,
};

use super::args::RunArgs;
use super::choice::{Asked, Choice};
use crate::failure::UsageError;
use crate::units;

/// Reads `--network` and what goes with it. `is_agent` says whether a coding agent is run, which needs its model.
pub(crate) fn network_from(
    args: &RunArgs,
    choice: &Choice<'_>,
    is_agent: bool,
) -> Result<Network, UsageError> {
    let through_broker = needs_sealed(args);
    let needs_model = is_agent || args.model_access;
    let asked = choice.network.as_ref();
    let network = match (choice.mode.value, asked) {
        (Mode::Host, Some(Asked { value: Network::None | Network::Sealed, by })) => {
            let mode = match choice.mode.by.as_str() {
                "--mode" => "--mode host".to_owned(),
                by => format!("mode host ({by})"),
            };
            let hint = match by.as_str() {
                "--network" => "type `--mode native`, or leave --network out",
                _ => "type `--mode native`; or `--network open`, if it is to run without walls",
            };
            return Err(UsageError::new(format!("{mode} cannot close the network{}", in_front(by)), hint));
        }
        (Mode::Host, _) => Network::Open,
        (Mode::Native | Mode::Docker | Mode::Apple, Some(asked)) => asked.value,
        (Mode::Native | Mode::Docker | Mode::Apple, None)
            if needs_model || through_broker.is_some() || !allowed_by_policy(choice).is_empty() =>
        {
            Network::Sealed
        }
        (Mode::Native | Mode::Docker | Mode::Apple, None) => Network::None,
    };
    match (network, through_broker) {
        (Network::None | Network::Open, Some(flag)) => Err(UsageError::new(
            format!("{flag} works with --network sealed only, and the network is `{network}`"),
            format!("leave {flag} out, or type `--network sealed`"),
        )),
        (Network::None, None) if needs_model => Err(UsageError::new(
            format!(
                "with --network none the agent cannot reach its model{}",
                asked.map_or_else(String::new, |asked| in_front(&asked.by))
            ),
            "type `--network sealed`: then it reaches its model and nothing else",
        )),
        _ => Ok(network),
    }
}

/// Whoever typed the flag knows; what was set long ago is named.
fn in_front(by: &str) -> String {
    if by == "--network" { String::new() } else { format!(" (the network is set by {by})") }
}

fn allowed_by_policy<'a>(choice: &Choice<'a>) -> &'a [AllowEntry] {
    choice.policy.and_then(|policy| policy.allow.as_deref()).unwrap_or_default()
}

/// The first flag that asks for something that only the broker's proxy gives.
fn needs_sealed(args: &RunArgs) -> Option<&'static str> {
    let flags = [
        (!args.allow.is_empty(), "--allow"),
        (!args.forward.is_empty(), "--forward"),
        (args.push.is_some(), "--push"),
    ];
    flags.into_iter().find(|(given, _)| *given).map(|(_, flag)| flag)
}

/// Reads what the broker lets through.
pub(crate) fn egress_from(
    args: &RunArgs,
    choice: &Choice<'_>,
    network: Network,
    settings: &EgressSettings,
    is_agent: bool,
) -> Result<EgressPolicy, UsageError> {
    let mut allow: Vec<AllowRule> = Vec::new();
    // A policy that lists what a sealed run may reach says nothing about one that has no broker.
    let of_policy = match network {
        Network::Sealed => allowed_by_policy(choice),
        Network::None | Network::Open => &[],
    };
    for text in of_policy.iter().map(AllowEntry::as_str).chain(args.allow.iter().map(String::as_str)) {
        for rule in rules(text, settings)? {
            if !allow.contains(&rule) {
                allow.push(rule);
            }
        }
    }
    let forwards: Vec<Forward> = args.forward.iter().map(|text| forward(text)).collect::<Result<_, _>>()?;
    let mut ports: Vec<u16> = forwards.iter().map(|forward| forward.port).collect();
    ports.sort_unstable();
    if let Some(twice) = ports.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(UsageError::new(
            format!("--forward: port {} is given twice", twice[0]),
            "give each service a port of its own",
        ));
    }
    Ok(EgressPolicy {
        allow,
        forwards,
        model: is_agent || args.model_access,
        vendor_tools: args.vendor_tools,
        push: args.push.as_deref().map(branch).transpose()?,
    })
}

/// A rule, or the name of a set of rules: the settings' own first, then the presets.
pub(crate) fn rules(text: &str, settings: &EgressSettings) -> Result<Vec<AllowRule>, UsageError> {
    if let Some(set) = settings.sets.get(text) {
        return Ok(set.clone());
    }
    if let Some(preset) = preset(text) {
        let rule = |text: &&str| text.parse().expect("presets are rules; a test of theirs says so");
        return Ok(preset.iter().map(rule).collect());
    }
    let rule = text.parse().map_err(|error: cofferdam_core::RuleError| {
        UsageError::new(
            format!("--allow: {error}"),
            "type HOST:PORT such as `registry.npmjs.org:443`, or a set such as `npm`, `pypi`, `crates`",
        )
    })?;
    Ok(vec![rule])
}

fn forward(text: &str) -> Result<Forward, UsageError> {
    let refuse = |why: &str| {
        UsageError::new(
            format!("--forward `{text}`: {why}"),
            "type PORT=HOST:PORT, such as `--forward 5432=db.example:5432`",
        )
    };
    let (port, target) = text.split_once('=').ok_or_else(|| refuse("there is no `=` in it"))?;
    let port: u16 = port.parse().map_err(|_| refuse("the port is a number from 1024 to 65535"))?;
    if port < 1024 {
        return Err(refuse("ports below 1024 are closed to the agent's user"));
    }
    if port == gateway::PORT {
        return Err(refuse("this port is the broker's own"));
    }
    let target = target.parse().map_err(|error: cofferdam_core::HostError| refuse(&error.to_string()))?;
    Ok(Forward { port, target })
}

fn branch(name: &str) -> Result<String, UsageError> {
    let branch: BranchName = name
        .parse()
        .map_err(|error: ValueError| UsageError::new(format!("--push {}", error.problem), error.hint))?;
    Ok(branch.into())
}

/// Reads the budgets.
pub(crate) fn budget_from(args: &RunArgs) -> Result<Budget, UsageError> {
    let count = |flag: &'static str, text: &Option<String>| {
        text.as_deref().map(|text| units::count(flag, text, 1, u32::MAX).map(u64::from)).transpose()
    };
    Ok(Budget {
        max_cost_micro_usd: args.max_cost_usd.as_deref().map(micro_usd).transpose()?,
        max_tokens: count("--max-tokens", &args.max_tokens)?,
        max_model_calls: count("--max-model-calls", &args.max_model_calls)?,
    })
}

fn micro_usd(text: &str) -> Result<u64, UsageError> {
    let refuse = || {
        UsageError::new(
            format!("--max-cost-usd `{text}` is not an amount"),
            "type dollars, such as `--max-cost-usd 2.50`",
        )
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !digits(whole) || !digits(part) || part.len() > 6 {
        return Err(refuse());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refuse())? };
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| refuse())?;
    let amount = whole.checked_mul(1_000_000).and_then(|whole| whole.checked_add(part));
    amount.filter(|&amount| amount > 0).ok_or_else(refuse)
}

#[cfg(test)]
#[path = "egress_tests.rs"]
mod tests;
