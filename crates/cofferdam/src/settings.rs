//! Reads `settings.json` in the state folder, and the variables that go before it.

use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use cofferdam_broker::{Price, PriceTable};
use cofferdam_core::{DockerSettings, PriceSettings, Settings};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// The caller's settings; the defaults if there is no file.
pub(crate) fn read(caller: &Caller) -> Result<Settings, Failure> {
    match caller.state_folder() {
        Some(folder) => read_in(&folder),
        None => Ok(Settings::default()),
    }
}

/// The settings in a state folder.
pub(crate) fn read_in(folder: &Path) -> Result<Settings, Failure> {
    let path = folder.join("settings.json");
    let refuse = |why: String| {
        Failure::new(ExitCode::Refused, format!("the settings in {} cannot be used: {why}", path.display()))
            .hint("correct the file, or move it away")
    };
    match std::fs::read_to_string(&path) {
        Ok(text) => parse(&text).map_err(refuse),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Settings::default()),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// The settings of containers on a Docker engine, with the caller's variables over them.
pub(crate) fn docker(caller: &Caller, settings: &Settings) -> Result<DockerSettings, Failure> {
    let mut docker = settings.sandbox.docker.clone();
    if let Some(image) = variable(caller, "SANDBOX_DOCKER_IMAGE")? {
        docker.image = image;
    }
    if let Some(network) = variable(caller, "SANDBOX_DOCKER_NETWORK")? {
        docker.network = network;
    }
    if let Some(host) = variable(caller, "DOCKER_HOST")? {
        docker.host = Some(host);
    }
    Ok(docker)
}

/// The value of a variable that is set and not empty.
fn variable<T: FromStr<Err: Display>>(caller: &Caller, name: &str) -> Result<Option<T>, Failure> {
    let Some(value) = caller.var(name) else { return Ok(None) };
    // What is not UTF-8 is in no grammar either, and the replaced characters say where.
    let read = value.to_string_lossy().parse();
    read.map(Some).map_err(|error| {
        Failure::new(ExitCode::Refused, format!("the variable {name} cannot be used: {error}"))
            .hint(format!("correct it, or type `unset {name}`"))
    })
}

/// The text of a settings file. An error says which key is wrong.
fn parse(text: &str) -> Result<Settings, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    let settings =
        serde_path_to_error::deserialize(&mut json).map_err(|error| match error.path().iter().next() {
            Some(_) => format!("{}: {}", error.path(), error.inner()),
            None => error.inner().to_string(),
        })?;
    json.end().map_err(|error| error.to_string())?;
    Ok(settings)
}

/// The built-in prices with the caller's over them.
pub(crate) fn prices(settings: &PriceSettings) -> PriceTable {
    let mut table = PriceTable::default_prices();
    if let Some(as_of) = &settings.as_of {
        table.as_of.clone_from(as_of);
    }
    for (model, price) in &settings.models {
        let price = Price {
            input: price.input,
            output: price.output,
            cache_read: price.cache_read.unwrap_or(price.input),
            cache_write: price.cache_write.unwrap_or(price.input),
        };
        table.models.insert(model.clone(), price);
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn caller(variables: &[(&str, &str)]) -> Caller {
        let env = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Caller { env, current_folder: PathBuf::from("/") }
    }

    #[test]
    fn an_error_says_which_key_is_wrong_and_what_to_type() {
        for (text, said) in [
            (
                r#"{"sandbox": {"docker": {"memory": "2q"}}}"#,
                "sandbox.docker.memory: `2q` is not a size; type a size such as `512m`, `2g` or `2GiB`",
            ),
            (
                r#"{"sandbox": {"docker": {"image": "openTiger/worker:latest"}}}"#,
                "sandbox.docker.image: image `openTiger/worker:latest` has upper case in its name; \
                 type `opentiger/worker:latest`",
            ),
            (
                r#"{"sandbox": {"apple": {"cpus": 0}}}"#,
                "sandbox.apple.cpus: `0` is not between 0.01 and 1024",
            ),
            (
                r#"{"sandbox": {"rewrite_loopback": ["A B"]}}"#,
                "sandbox.rewrite_loopback: `A B` is not the name",
            ),
            (r#"{"sandbox": {"docker": {"memry": "2g"}}}"#, "sandbox.docker.memry: unknown field `memry`"),
            (
                r#"{"egress": {"sets": {"mine": ["a.example"]}}}"#,
                "egress.sets.mine[0]: `a.example` names no port",
            ),
            ("", "EOF while parsing"),
            ("{} {}", "trailing characters"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with(said), "{text}: {error}");
        }
        assert_eq!(parse("{}"), Ok(Settings::default()));
    }

    #[test]
    fn variables_go_before_the_file_and_empty_ones_do_not() {
        let file = r#"{"sandbox": {"docker": {"image": "file:1", "network": "file", "cpus": 2}}}"#;
        let settings = parse(file).unwrap();
        let shown = |variables: &[(&str, &str)]| {
            let docker = docker(&caller(variables), &settings).unwrap();
            assert_eq!(docker.cpus, settings.sandbox.docker.cpus);
            (docker.image.to_string(), docker.network.to_string(), docker.host.map(|host| host.to_string()))
        };
        assert_eq!(shown(&[]), ("file:1".to_owned(), "file".to_owned(), None));
        assert_eq!(
            shown(&[
                ("SANDBOX_DOCKER_IMAGE", "env:1"),
                ("SANDBOX_DOCKER_NETWORK", "default"),
                ("DOCKER_HOST", "unix:///run/x.sock")
            ]),
            ("env:1".to_owned(), "default".to_owned(), Some("unix:///run/x.sock".to_owned()))
        );
        let empty = [("SANDBOX_DOCKER_IMAGE", ""), ("SANDBOX_DOCKER_NETWORK", ""), ("DOCKER_HOST", "")];
        assert_eq!(shown(&empty), ("file:1".to_owned(), "file".to_owned(), None));
    }

    #[test]
    fn a_variable_that_is_wrong_is_named() {
        for (name, value, said) in [
            ("SANDBOX_DOCKER_IMAGE", "openTiger/worker:latest", "type `opentiger/worker:latest`"),
            ("SANDBOX_DOCKER_NETWORK", "host", "type `bridge`"),
            ("DOCKER_HOST", "ssh://far", "another machine"),
        ] {
            let failure = docker(&caller(&[(name, value)]), &Settings::default()).unwrap_err();
            assert_eq!(failure.code(), ExitCode::Refused);
            assert!(failure.message().starts_with(&format!("the variable {name} cannot be used: ")));
            assert!(failure.message().contains(said), "{}", failure.message());
            assert!(failure.message().contains(value), "{}", failure.message());
        }
    }
}
