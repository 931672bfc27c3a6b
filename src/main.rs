//! The command.

fn main() -> std::process::ExitCode {
    kvdyno::cli::main()
}
