//! The processes of a service, over HTTP and at the command line: `/system/processes` and `cofferdam ps`. Tests are named after
//! the section of the document that the routes come from.

mod command_line;
mod host;
mod http;
mod sandbox;
mod stop_all;
