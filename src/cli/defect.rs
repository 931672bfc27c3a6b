//! What panics in this program ends with a plain message and an exit code of its own.

use super::error::DEFECT;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};

static FOUND: AtomicBool = AtomicBool::new(false);

/// Runs a command and gives its exit code; that of a defect if it, or a thread of it, panicked.
pub fn guarded(command: impl FnOnce() -> u8) -> u8 {
    set_hook(Box::new(tell));
    let code = catch_unwind(AssertUnwindSafe(command)).unwrap_or(DEFECT);
    if FOUND.load(Ordering::Acquire) { DEFECT } else { code }
}

fn tell(panic: &PanicHookInfo<'_>) {
    FOUND.store(true, Ordering::Release);
    eprint!("{}", text(panic));
}

fn text(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let what = text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    let place =
        panic.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
    let mut text = format!(
        "error: kvdyno has a defect, and this command ends early: {what}{place}\n\
         hint: what was measured is saved, and `kvdyno run --resume` goes on with it; please report this text with the \
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

    static TOLD: Mutex<String> = Mutex::new(String::new());

    // One test, for all tests of this process share the hook, and may panic meanwhile.
    #[test]
    fn a_panic_is_an_exit_code_of_its_own_and_a_text_that_says_what_to_do() {
        let told = || TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        let own = std::panic::take_hook();
        let codes = [
            guarded(|| panic!("planted")),
            // Nobody looks at how this thread ends, and the command believes that all is well.
            guarded(|| std::thread::spawn(|| panic!("planted")).join().map_or(0, |()| 0)),
        ];
        set_hook(Box::new(move |panic| {
            let text = text(panic);
            if text.contains("planted 7") {
                *told() = text;
            }
        }));
        let ended = catch_unwind(|| panic!("planted {}", 7));
        set_hook(own);
        FOUND.store(false, Ordering::Release);
        assert!(ended.is_err());
        assert_eq!(codes, [DEFECT, DEFECT]);
        for wanted in
            ["error: kvdyno has a defect", "defect.rs:", "`kvdyno run --resume`", "report this text"]
        {
            assert!(told().contains(wanted), "no `{wanted}` in {}", told());
        }
    }
}
