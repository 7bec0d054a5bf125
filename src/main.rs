//! The `pgautoprep` program: command line in, exit code out.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use pgautoprep::cli::{Arguments, EXIT_USAGE};
use pgautoprep::{config, net};

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(answer) => {
            // When not even that can be written there is nobody to tell.
            let _ = answer.print();
            return if answer.use_stderr() {
                EXIT_USAGE.into()
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match arguments.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The whole chain of causes, once, on one line.
            let text = net::with_causes(error.as_ref());
            let _ = writeln!(io::stderr(), "pgautoprep: {text}");
            let of_files = net::Error::is_about_files;
            let is_about_files = error.downcast_ref().is_some_and(of_files);
            if is_about_files || error.is::<config::Error>() {
                EXIT_USAGE.into()
            } else {
                ExitCode::FAILURE
            }
        }
    }
}
