//! Reports a panic in kvdyno with a plain message and a separate exit code.

use super::error::DEFECT;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};

static FOUND: AtomicBool = AtomicBool::new(false);

/// Runs a command and returns its exit code, or the one of a defect if the command or one of its threads panicked.
pub(super) fn guarded(command: impl FnOnce() -> u8) -> u8 {
    set_hook(Box::new(report));
    let code = catch_unwind(AssertUnwindSafe(command)).unwrap_or(DEFECT);
    if FOUND.load(Ordering::Acquire) { DEFECT } else { code }
}

fn report(panic: &PanicHookInfo<'_>) {
    FOUND.store(true, Ordering::Release);
    eprint!("{}", text(panic));
}

fn text(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let what = text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    let place =
        panic.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
    let mut text = format!(
        "error: kvdyno has a bug and this command was stopped: {what}{place}\n\
         hint: completed trials are saved and `kvdyno run --resume` continues the run; please report this message and the \
         command\n"
    );
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        text.push_str(&format!("{}\n", std::backtrace::Backtrace::capture()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    static MESSAGE: Mutex<String> = Mutex::new(String::new());

    // This is one test because all tests of the process share the hook and may panic at the same time.
    #[test]
    fn a_panic_has_its_own_exit_code_and_a_message_with_a_hint() {
        let message = || MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
        let hook = std::panic::take_hook();
        let codes = [
            guarded(|| panic!("planted")),
            // The command ignores the panic of this thread and returns 0.
            guarded(|| std::thread::spawn(|| panic!("planted")).join().map_or(0, |()| 0)),
        ];
        set_hook(Box::new(move |panic| {
            let text = text(panic);
            if text.contains("planted 7") {
                *message() = text;
            }
        }));
        let ended = catch_unwind(|| panic!("planted {}", 7));
        set_hook(hook);
        FOUND.store(false, Ordering::Release);
        assert!(ended.is_err());
        assert_eq!(codes, [DEFECT, DEFECT]);
        for wanted in
            ["error: kvdyno has a bug", "defect.rs:", "`kvdyno run --resume`", "report this message"]
        {
            assert!(message().contains(wanted), "no `{wanted}` in {}", message());
        }
    }
}
