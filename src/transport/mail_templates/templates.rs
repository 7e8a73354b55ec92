//! Loads the embedded mail templates and the operator's overrides.

use std::{fs, io::Read, path::Path};

use minijinja::{
    AutoEscape, Environment, Error as Mistake, Output, State, UndefinedBehavior, Value,
    escape_formatter, syntax::SyntaxConfig,
};
use rust_embed::RustEmbed;

use crate::runtime::error::{Error, ErrorKind, Result};

/// Bytes of a custom mail template.
const TEMPLATE_BYTES_MAX: u64 = 256 * 1024;

#[derive(RustEmbed)]
#[folder = "assets/mails/"]
struct MailTemplateFiles;

/// Compiles every template, from its file in `overrides` if there is one.
pub(super) fn load(overrides: Option<&Path>) -> Result<Environment<'static>> {
    if let Some(folder) = overrides {
        check_names(folder)?;
    }
    let mut environment = Environment::new();
    // An undefined variable in a template is an error, not an empty text.
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Lines with only control blocks leave no empty lines in the output.
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.map_err(Error::internal)?);
    environment.set_formatter(format);
    for name in MailTemplateFiles::iter() {
        let override_text = overrides.map(|folder| read(folder, &name)).transpose()?.flatten();
        let text = match override_text {
            Some(text) => text,
            None => {
                let Some(file) = MailTemplateFiles::get(&name) else { continue };
                String::from_utf8(file.data.into_owned()).map_err(Error::internal)?
            }
        };
        environment.add_template_owned(name.into_owned(), text).map_err(|error| {
            Error::new(ErrorKind::InvalidArgument, format!("mail template: {error}"))
        })?;
    }
    Ok(environment)
}

/// Escapes a value like minijinja, except that `/` stays unescaped in HTML. URLs thus stay recognizable to
/// programs, and mails become shorter.
fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Mistake> {
    let is_html = matches!(state.auto_escape(), AutoEscape::Html);
    let Some(text) = value.as_str().filter(|_| is_html && !value.is_safe()) else {
        return escape_formatter(out, state, value);
    };
    out.write_str(&escape(text)).map_err(Mistake::from)
}

/// Escapes a text for HTML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn invalid(path: &Path, what: &str) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("mail template {}: {what}", path.display()))
}

/// Fails for a template in `folder` with an unknown name, because a misspelt template would never be used.
fn check_names(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(|cause| unreadable(folder, &cause))? {
        let name = entry.map_err(|cause| unreadable(folder, &cause))?.file_name();
        let name = name.to_string_lossy();
        let is_template = name.ends_with(".html") || name.ends_with(".txt");
        // Editors leave hidden files, and other files may be the operator's notes.
        if is_template && !name.starts_with('.') && MailTemplateFiles::get(&name).is_none() {
            let mut known: Vec<_> = MailTemplateFiles::iter().collect();
            known.sort();
            let what = format!("no such template; there are {}", known.join(", "));
            return Err(invalid(&folder.join(&*name), &what));
        }
    }
    Ok(())
}

fn unreadable(folder: &Path, cause: &std::io::Error) -> Error {
    let message = format!("folder of mail templates {}: {cause}", folder.display());
    Error::new(ErrorKind::InvalidArgument, message)
}

fn read(folder: &Path, name: &str) -> Result<Option<String>> {
    let path = folder.join(name);
    let file = match fs::File::open(&path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(invalid(&path, &cause.to_string())),
    };
    let mut bytes = Vec::new();
    // One byte more than allowed is enough to detect a template that is too long.
    let read = file.take(TEMPLATE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|cause| invalid(&path, &cause.to_string()))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > TEMPLATE_BYTES_MAX) {
        return Err(invalid(&path, &format!("longer than {TEMPLATE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| invalid(&path, "not UTF-8"))
}
