//! From a job to the adapter that does it and how its CLI is started.

use cofferdam_agent::{Adapter, Command, Context, ModelRoute, for_work};
use cofferdam_core::Job;
use rustix::process::getuid;

use crate::environment;

/// The adapter, and how its CLI is started.
pub(crate) fn prepare(job: &Job, context: &Context<'_>) -> (Box<dyn Adapter + Send>, Command) {
    let adapter = for_work(&job.work);
    let mut command = adapter.command(context);
    if let (Some(setup), Some(route)) = (&job.gateway, &context.model_route) {
        let mut env = environment::of_gateway(job, setup, route.gateway_url);
        env.append(&mut command.env);
        command.env = env;
    }
    (adapter, command)
}

/// What the adapter may know.
pub(crate) fn context<'a>(job: &'a Job, gateway_url: Option<&'a str>) -> Context<'a> {
    let route = job.gateway.as_ref().zip(gateway_url).map(|(setup, gateway_url)| ModelRoute {
        gateway_url,
        placeholder: &setup.placeholder,
        vendor: setup.vendor,
        login: &setup.login,
    });
    Context {
        program: &job.program,
        model_route: route,
        working_directory: &job.working_directory,
        attempt: &job.attempt,
        is_root: getuid().is_root(),
        session: job.session.as_ref(),
    }
}
