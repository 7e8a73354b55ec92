//! Finds active content: scripts and programs that a reader may start when a PDF is opened or clicked.

use lopdf::{Dictionary, Document, Object};

use crate::number::entry;

/// The scripts and programs that a PDF asks its reader to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActiveContent {
    /// True if the file contains JavaScript.
    pub scripts: bool,
    /// True if the file contains an action that starts a program or opens a file.
    pub launches: bool,
}

/// Finds the active content of a document.
///
/// Every object of the file is examined, referenced or not, because readers follow different references. Needs one
/// pass over all objects.
pub(super) fn find(document: &Document) -> ActiveContent {
    let mut found = ActiveContent::default();
    // An explicit stack instead of recursion, because the file determines the nesting depth.
    let mut pending: Vec<&Object> = document.objects.values().collect();
    while let Some(object) = pending.pop() {
        match object {
            Object::Array(list) => pending.extend(list),
            Object::Dictionary(dictionary) => {
                search(document, dictionary, &mut found, &mut pending);
            }
            Object::Stream(stream) => search(document, &stream.dict, &mut found, &mut pending),
            _ => {}
        }
        if found.scripts && found.launches {
            break;
        }
    }
    found
}

fn search<'a>(
    document: &'a Document,
    dictionary: &'a Dictionary,
    found: &mut ActiveContent,
    pending: &mut Vec<&'a Object>,
) {
    // The key of a script in an action, and the catalog's list of named scripts.
    found.scripts |= dictionary.has(b"JS") || dictionary.has(b"JavaScript");
    // The type of an action may be an indirect object.
    if let Object::Name(action) = entry(document, dictionary, b"S") {
        found.scripts |= action == b"JavaScript";
        found.launches |= action == b"Launch";
    }
    pending.extend(dictionary.iter().map(|(_, value)| value));
}

#[cfg(test)]
mod tests {
    use lopdf::{StringFormat, dictionary};

    use super::*;
    use crate::facts;
    use crate::test_documents::{LIMITS, TestDocument};

    fn check(sheet: TestDocument, scripts: bool, launches: bool) {
        let found = facts(&sheet.bytes(), &LIMITS).unwrap().active;
        assert_eq!(found, ActiveContent { scripts, launches });
    }

    fn text(text: &str) -> Object {
        Object::String(text.as_bytes().to_vec(), StringFormat::Literal)
    }

    /// A page that runs `action` when it is shown.
    fn page_with(action: impl Into<Object>) -> TestDocument {
        let mut sheet = TestDocument::new("");
        sheet.page.set("AA", dictionary! { "O" => action.into() });
        sheet
    }

    #[test]
    fn a_plain_document_has_none() {
        check(TestDocument::new("0 0 10 10 re f % /JavaScript /Launch"), false, false);
        let link = dictionary! { "S" => "URI", "URI" => text("https://a.example/JavaScript") };
        check(page_with(link), false, false);
    }

    #[test]
    fn scripts_and_programs_are_found_anywhere() {
        let script = dictionary! { "S" => "JavaScript", "JS" => text("app.alert(1)") };
        check(page_with(script.clone()), true, false);
        check(page_with(dictionary! { "S" => "Launch", "F" => text("cmd.exe") }), false, true);
        check(page_with(vec![Object::Dictionary(script.clone())]), true, false);
        // An action without references, and a type that is a separate object.
        let mut sheet = TestDocument::new("");
        sheet.document.add_object(dictionary! { "Next" => script });
        check(sheet, true, false);
        let mut sheet = TestDocument::new("");
        let launch = sheet.document.add_object(Object::Name(b"Launch".to_vec()));
        sheet.page.set("A", dictionary! { "S" => launch });
        check(sheet, false, true);
        // A rendition action carries a script under its own type.
        check(page_with(dictionary! { "S" => "Rendition", "JS" => text("x") }), true, false);
    }

    #[test]
    fn names_are_read_as_readers_read_them() {
        let bytes = page_with(dictionary! { "S" => "Launch", "F" => text("xxxx") }).bytes();
        let replaced = |bytes: &[u8], old: &[u8], new: &[u8]| {
            let position = bytes.windows(old.len()).position(|window| window == old).unwrap();
            [&bytes[..position], new, &bytes[position + old.len()..]].concat()
        };
        // The same length as before, so that the cross-reference table stays valid.
        let bytes = replaced(&replaced(&bytes, b"/Launch", b"/L#61unch"), b"xxxx", b"xx");
        assert!(facts(&bytes, &LIMITS).unwrap().active.launches);
    }
}
