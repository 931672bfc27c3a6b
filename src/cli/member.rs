//! `kvdyno member NUMBER PROGRAM ...`: becomes a member of a trial's store. Started by drivers whose members are to be cut off or
//! to have slow disks.

use super::error::CliError;
use std::ffi::OsString;

/// Become a member of a store, with a link or a disk that a trial can disturb.
#[derive(Debug, clap::Args)]
pub(super) struct MemberArgs {
    /// Its number, from 1.
    number: u8,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
}

/// Becomes the program.
pub(super) fn run(args: &MemberArgs) -> Result<u8, CliError> {
    let (program, arguments) = args.program.split_first().expect("clap requires it");
    Err(CliError::failed(kvdyno_core::runner::become_member(args.number, program, arguments)))
}
