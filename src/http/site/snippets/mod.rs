//! Code samples of an API call: curl in a shell, JavaScript and Python.
//!
//! `assets/js/snippets.js` generates the same code while a visitor types; a test compares both. Every string is
//! quoted. Characters that are invisible in a terminal or change the direction of a line are escaped.

use serde::Serialize;

use super::api_client::encode_segment;

/// A call for which code samples are generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SnippetCall {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub(super) method: String,
    pub(super) url: String,
    /// Value of the header `Authorization`.
    pub(super) authorization: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) body: Option<String>,
    /// Name of the file for a binary response; `None` for a text.
    pub(super) file: Option<String>,
}

/// The code of a call in each language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct CodeSnippets {
    curl: String,
    javascript: String,
    python: String,
}

impl From<&SnippetCall> for CodeSnippets {
    fn from(call: &SnippetCall) -> Self {
        Self { curl: call.curl(), javascript: call.javascript(), python: call.python() }
    }
}

impl SnippetCall {
    fn headers(&self) -> Vec<(&'static str, &str)> {
        let authorization = self.authorization.as_deref().map(|text| ("Authorization", text));
        let kind = self.kind.as_deref().map(|text| ("Content-Type", text));
        authorization.into_iter().chain(kind).collect()
    }

    fn curl(&self) -> String {
        let mut words = vec!["curl".to_owned()];
        // curl would expand brackets in a URL as a pattern.
        if self.url.contains(['[', ']', '{', '}']) {
            words.push("--globoff".to_owned());
        }
        if self.method != "GET" {
            words.push(format!("-X {}", self.method));
        }
        words.push(shell_quote(&self.url));
        let mut lines = vec![words.join(" ")];
        for (name, value) in self.headers() {
            lines.push(format!("-H {}", shell_quote(&format!("{name}: {value}"))));
        }
        // `--data` would read a file if the text begins with `@`.
        lines.extend(self.body.as_ref().map(|body| format!("--data-raw {}", shell_quote(body))));
        // curl refuses to print binary data to a terminal.
        lines.extend(self.file.as_ref().map(|file| format!("--output {}", shell_quote(file))));
        lines.join(" \\\n  ")
    }

    fn javascript(&self) -> String {
        let mut options = Vec::new();
        if self.method != "GET" {
            options.push(format!("  method: {},\n", string_literal(&self.method)));
        }
        let headers: String = self.entries("    ");
        if !headers.is_empty() {
            options.push(format!("  headers: {{\n{headers}  }},\n"));
        }
        options
            .extend(self.body.as_ref().map(|body| format!("  body: {},\n", string_literal(body))));
        let options = match options.concat() {
            options if options.is_empty() => String::new(),
            options => format!(", {{\n{options}}}"),
        };
        let call =
            format!("const response = await fetch({}{options});\n", string_literal(&self.url));
        match &self.file {
            Some(file) => format!(
                "import {{ writeFile }} from 'node:fs/promises';\n\n{call}\
                 await writeFile({}, new Uint8Array(await response.arrayBuffer()));",
                string_literal(file)
            ),
            None => format!("{call}console.log(await response.text());"),
        }
    }

    fn python(&self) -> String {
        let mut arguments = format!("    {},\n", string_literal(&self.url));
        if self.method != "GET" {
            // By default, urllib uses `POST` with a body and `GET` without.
            arguments.push_str(&format!("    method={},\n", string_literal(&self.method)));
        }
        let headers = self.entries("        ");
        if !headers.is_empty() {
            arguments.push_str(&format!("    headers={{\n{headers}    }},\n"));
        }
        if let Some(body) = &self.body {
            arguments.push_str(&format!("    data={}.encode(),\n", string_literal(body)));
        }
        let read = match &self.file {
            Some(file) => format!(
                "    with open({}, 'wb') as file:\n        file.write(response.read())",
                string_literal(file)
            ),
            None => "    print(response.read().decode())".to_owned(),
        };
        format!(
            "import urllib.request\n\nrequest = urllib.request.Request(\n{arguments})\n\
             with urllib.request.urlopen(request) as response:\n{read}"
        )
    }

    fn entries(&self, indent: &str) -> String {
        let entries = self.headers().into_iter().map(|(name, value)| {
            format!("{indent}{}: {},\n", string_literal(name), string_literal(value))
        });
        entries.collect()
    }
}

/// Returns whether `c` is invisible, or changes the display of adjacent characters.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// Quotes a word for a shell. Single quotes are used, because within them no character has a special meaning. A
/// word with hidden characters is quoted in `$'…'`, which supports escapes in bash, ksh and zsh. A shell word
/// cannot contain NUL.
fn shell_quote(text: &str) -> String {
    // Line breaks and tabs are literal within single quotes and remain readable.
    if !text.chars().any(|c| is_hidden(c) && c != '\n' && c != '\t') {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\\' => word.push_str("\\\\"),
            '\'' => word.push_str("\\'"),
            '\n' => word.push_str("\\n"),
            '\t' => word.push_str("\\t"),
            // An interactive shell would expand `!` from its history.
            '!' => word.push_str("\\x21"),
            c if is_hidden(c) => {
                let mut buffer = [0; 4];
                let bytes = c.encode_utf8(&mut buffer).bytes();
                word.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
            }
            c => word.push(c),
        }
    }
    word + "'"
}

/// Quotes a string in the syntax that JavaScript and Python share.
fn string_literal(text: &str) -> String {
    let mut literal = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => literal.push_str("\\\\"),
            '\'' => literal.push_str("\\'"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            // All hidden characters are in the Basic Multilingual Plane, so four digits suffice in both languages.
            c if is_hidden(c) => literal.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal + "'"
}

/// Builds path and query of a call. Each `{name}` in `path` is replaced by its value; a name without a value is
/// kept, so that the gap is visible. The query has the parameters that have a value.
pub(super) fn target(
    path: &str,
    values: &[(String, String)],
    query: &[(String, String)],
) -> String {
    let mut target = String::new();
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').unwrap_or((after, ""));
        let value = values.iter().find(|(own, value)| own == name && !value.is_empty());
        target.push_str(before);
        target.push_str(
            &value.map_or_else(|| format!("{{{name}}}"), |(_, value)| encode_segment(value)),
        );
        rest = behind;
    }
    target.push_str(rest);
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    let given = query.iter().filter(|(_, value)| !value.is_empty());
    encoded.extend_pairs(given);
    match encoded.finish() {
        query if query.is_empty() => target,
        query => format!("{target}?{query}"),
    }
}

/// Returns the file name for the response of `target`: the end of its path, reduced to plain characters.
pub(super) fn file_name(target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    let end = path.rsplit('/').next().unwrap_or_default();
    let plain: String =
        end.chars().filter(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect();
    // A leading dot would hide the file, and a leading hyphen would turn the name into an option.
    let name = plain.trim_start_matches(['.', '-']);
    if name.is_empty() { "answer".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests;
