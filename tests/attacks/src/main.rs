//! The hostile program. `attacks run --target JSON` makes every attempt and prints a line of JSON for
//! each, `attacks workspace` every way to change what the workspace holds; the other commands are one behaviour each.

use std::path::Path;
use std::process::ExitCode;

use cofferdam_attacks::broker::{self, BrokerTarget};
use cofferdam_attacks::{Report, behaviours, hiding, run_all, run_on_workspace};

const USAGE: &str =
    "usage: attacks run|workspace --target JSON | output BYTES | line BYTES | outlive SECONDS | forge
       | memory BYTES | fork N | disk BYTES [FOLDER] | fds N | watchers N FOLDER | victim NAME | whoami
       | hide name|zombie|table disk MIB FOLDER SECONDS | hide name|zombie|table memory MIB SECONDS
       | mappings PROCESSES MAPPINGS FOLDER
       | broker attempts|controls|opened|around --target JSON | flood HOST:PORT FILE
       | bombs FOLDER FILE | calls FILE";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("attacks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn command(args: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    match args {
        ["run", "--target", target] => run_all(&serde_json::from_str(target)?, tell),
        ["workspace", "--target", target] => run_on_workspace(&serde_json::from_str(target)?, tell),
        ["output", bytes] => behaviours::output(bytes.parse()?)?,
        ["line", bytes] => behaviours::line(bytes.parse()?)?,
        ["outlive", seconds] => behaviours::outlive(seconds.parse()?)?,
        ["forge"] => behaviours::forge()?,
        ["memory", bytes] => behaviours::memory(bytes.parse()?),
        ["fork", processes] => behaviours::fork(processes.parse()?)?,
        ["disk", bytes] => behaviours::disk(Path::new("."), bytes.parse()?)?,
        ["disk", bytes, folder] => behaviours::disk(Path::new(folder), bytes.parse()?)?,
        ["watchers", most, folder] => behaviours::watchers(most.parse()?, Path::new(folder))?,
        ["fds", files] => behaviours::fds(files.parse()?)?,
        ["hide", hiding, "disk", mib, folder, seconds] => {
            hiding::disk(hiding.parse()?, mib.parse()?, Path::new(folder), seconds.parse()?)?;
        }
        ["hide", hiding, "memory", mib, seconds] => {
            hiding::memory(hiding.parse()?, mib.parse()?, seconds.parse()?)?;
        }
        ["mappings", processes, mappings, folder] => {
            hiding::mappings(processes.parse()?, mappings.parse()?, Path::new(folder))?;
        }
        ["victim", name] => behaviours::victim(name)?,
        ["broker", which, "--target", target] => ask_broker(which, &serde_json::from_str(target)?)?,
        ["flood", endless, over] => broker::flood::flood(endless, Path::new(over))?,
        ["bombs", folder, over] => broker::bombs::bombs(Path::new(folder), Path::new(over))?,
        ["calls", over] => broker::bombs::calls(Path::new(over))?,
        ["whoami"] => println!("{}", rustix::process::geteuid().as_raw()),
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn tell(report: Report) {
    println!("{}", serde_json::to_string(&report).expect("a report is plain data"));
}

fn ask_broker(which: &str, target: &BrokerTarget) -> Result<(), &'static str> {
    let tell = |answered| println!("{}", serde_json::to_string(&answered).expect("an answer is plain data"));
    let attempts = match which {
        "attempts" => broker::attempts(target),
        "controls" => broker::controls(target),
        "opened" => broker::opened(target),
        "around" => {
            broker::around(target).into_iter().for_each(tell);
            return Ok(());
        }
        _ => return Err(USAGE),
    };
    attempts.iter().map(broker::ask).for_each(tell);
    Ok(())
}
