//! Names a browser by its `User-Agent`, for users who review their logins.

/// Returns the browser and its operating system, if `User-Agent` names them, such as "Firefox, Windows".
/// Returns an unknown value unchanged.
pub fn browser_name(user_agent: &str) -> String {
    // Most browsers also name the browsers that they imitate, so the order matters.
    const BROWSERS: [(&str, &str); 8] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"),
        ("Firefox/", "Firefox"),
        // On iOS, Firefox and Chrome have names of their own.
        ("FxiOS/", "Firefox"),
        ("CriOS/", "Chrome"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("Windows", "Windows"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        // Android also names Linux, so it comes first.
        ("Android", "Android"),
        ("Macintosh", "macOS"),
        ("CrOS", "ChromeOS"),
        ("Linux", "Linux"),
    ];
    let browser = find_name(user_agent, &BROWSERS);
    let system = find_name(user_agent, &SYSTEMS);
    let names_found: Vec<&str> = [browser, system].into_iter().flatten().collect();
    if names_found.is_empty() { user_agent.to_owned() } else { names_found.join(", ") }
}

/// Finds the first mark in `marks` that `user_agent` contains, and returns the name that follows it.
fn find_name(user_agent: &str, marks: &[(&str, &'static str)]) -> Option<&'static str> {
    marks.iter().find(|(mark, _)| user_agent.contains(mark)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_named_by_their_user_agent() {
        let check =
            |user_agent: &str, expected: &str| assert_eq!(browser_name(user_agent), expected);
        let chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like \
             Gecko) Chrome/130.0.0.0 Safari/537.36";
        check(chrome, "Chrome, Windows");
        check(&format!("{chrome} Edg/130.0.0.0"), "Edge, Windows");
        check(
            "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
            "Firefox, Linux",
        );
        check(
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, \
             like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
            "Safari, iPhone",
        );
        check("curl/8.5.0", "curl/8.5.0");
        check("", "");
    }
}
