//! Statements of sources about the rights in their files: `rights.json` in a folder, and the part `rights` of an
//! upload.
//!
//! The file in a folder applies to everything in the folder and below it. If several folders state a property, the
//! statement of the nearest folder counts.

use std::io;
use std::path::{Path, PathBuf};

use api::ingest::RIGHTS_STATEMENT_BYTES_MAX;

use super::files::{self, RIGHTS_FILE};
use super::{Ingest, IngestError, IngestResult};
use metadata::RightsMetadata;
use model::item::{Asset, AssetFile, parse_rights_statement};

impl Ingest {
    /// Accepts statements about rights in the folders `paths`, and in the folders of the files `paths`.
    #[must_use]
    pub fn with_sources(self, paths: &[PathBuf]) -> Self {
        Self { sources: paths.iter().map(|path| folder_of(path).to_owned()).collect(), ..self }
    }

    /// Reads the rights statements in the folder of a file, and in the folders of the source around it.
    ///
    /// Fails if a statement cannot be parsed: a picture must not be published without the statement of its source.
    pub(super) fn source_rights(&self, folder: &Path) -> IngestResult<RightsMetadata> {
        let roots = self.confined_root.iter().chain(&self.sources);
        let Some(root) = find_root(folder, roots.map(PathBuf::as_path)) else {
            return Ok(RightsMetadata::default());
        };
        let mut rights = RightsMetadata::default();
        for folder in folder.ancestors() {
            // From the nearest folder outwards, so the properties of earlier folders take precedence.
            if let Some(stated) = self.read_rights(&folder.join(RIGHTS_FILE))? {
                rights = stated.overlaid(&rights);
            }
            if folder == root {
                break;
            }
        }
        Ok(rights)
    }

    fn read_rights(&self, path: &Path) -> IngestResult<Option<RightsMetadata>> {
        // The file stays open until it is read.
        let read = self.pin(path).and_then(|opened| {
            files::read(opened.path(), RIGHTS_STATEMENT_BYTES_MAX as u64, "64 KiB")
        });
        match read {
            Err(error) if is_absent(&error) => Ok(None),
            // A disk failure is not the fault of the file, so the ingest is retried.
            Err(error) if error.is_internal() => Err(error),
            Err(error) => Err(rights_error(path, &error)),
            Ok(text) => parse_rights(&text).map(Some).map_err(|why| rights_error(path, &why)),
        }
    }
}

/// Finds the folder at which the search upwards from `folder` ends: the longest of `roots` that contains it.
fn find_root<'a>(folder: &Path, roots: impl Iterator<Item = &'a Path>) -> Option<&'a Path> {
    let around = roots.filter(|root| contains(root, folder));
    around.max_by_key(|root| root.components().count())
}

fn contains(root: &Path, folder: &Path) -> bool {
    // The empty path is the folder of a file that is given by its name alone. Every path begins with it.
    if root.as_os_str().is_empty() {
        folder.as_os_str().is_empty()
    } else {
        folder.starts_with(root)
    }
}

/// Returns the folder at `path`, or the folder of the file at `path`.
fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

fn rights_error(path: &Path, why: &dyn std::fmt::Display) -> IngestError {
    IngestError::Rights { place: path.display().to_string(), why: why.to_string() }
}

/// Parses a statement about rights. A leading byte order mark is ignored.
///
/// Fails with a description of the problem, which names a property by its path.
pub(super) fn parse_rights(text: &[u8]) -> Result<RightsMetadata, String> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let value = serde_json::from_slice(text).map_err(|cause| format!("is not JSON: {cause}"))?;
    parse_rights_statement(&value).map_err(|cause| cause.to_string())
}

/// Adds the statement of their source to pictures. Pictures that were made from other files carry no rights of
/// their own.
pub(super) fn apply_rights(assets: &mut [Asset], source: &RightsMetadata) {
    for asset in assets {
        let is_made = asset.made;
        if let AssetFile::Picture(picture) = &mut asset.file {
            picture.source_rights.clone_from(source);
            if is_made {
                picture.rights = RightsMetadata::default();
            }
        }
    }
}

fn is_absent(error: &IngestError) -> bool {
    matches!(error, IngestError::Unreadable(cause) if cause.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::item::PictureFile;
    use model::{ContentHash, RenditionName, Size};

    #[test]
    fn a_made_picture_carries_nothing_of_its_own() {
        let rights = |term: &str| parse_rights(term.as_bytes()).unwrap();
        let file = rights(r#"{"jobid":"7"}"#);
        let source = rights(r#"{"dataMining":"DMI-PROHIBITED"}"#);
        let asset = |made| {
            let picture = PictureFile {
                name: RenditionName::NORMAL_PREVIEW,
                blob: ContentHash::new(b"x"),
                length: 1,
                stored: Size::new(3, 2),
                orientation: 1,
                progressive: false,
                components: 3,
                is_grey: false,
                picture_hash: None,
                rights: file.clone(),
                source_rights: RightsMetadata::default(),
            };
            Asset { association: None, made, file: AssetFile::Picture(picture) }
        };
        let mut assets = [asset(false), asset(true)];
        apply_rights(&mut assets, &source);
        let pictures: Vec<_> = assets.iter().filter_map(Asset::picture).collect();
        assert!(pictures.iter().all(|picture| picture.source_rights == source));
        assert_eq!((&pictures[0].rights, pictures[1].rights.is_empty()), (&file, true));
    }

    #[test]
    fn the_search_upwards_ends_at_the_longest_path_around_the_folder() {
        let check = |folder: &str, roots: &[&str], expected: Option<&str>| {
            let roots = roots.iter().map(Path::new);
            let found = find_root(Path::new(folder), roots);
            assert_eq!(found, expected.map(Path::new), "{folder}");
        };
        for roots in [["a", "a/b"], ["a/b", "a"]] {
            check("a/b/c", &roots, Some("a/b"));
            check("a/b", &roots, Some("a/b"));
            check("a/c", &roots, Some("a"));
            check("ab", &roots, None);
        }
        let with_bare_name = ["", "a", "/a"];
        check("", &with_bare_name, Some(""));
        check("a/b", &with_bare_name, Some("a"));
        check("c", &with_bare_name, None);
        check("/b", &with_bare_name, None);
        check("/a/b", &with_bare_name, Some("/a"));
    }

    #[test]
    fn a_statement_is_json_with_known_properties() {
        let rights = parse_rights(b"\xEF\xBB\xBF{\"dataMining\":\"DMI-PROHIBITED\"}").unwrap();
        assert!(rights.data_mining().is_some());
        assert!(parse_rights(b"{").unwrap_err().contains("is not JSON"));
        let error = parse_rights(b"{\"dataMining\":\"DMI-MAYBE\"}").unwrap_err();
        assert!(error.contains("dataMining"), "{error}");
        let error = parse_rights(b"{\"imageRegion\":[]}").unwrap_err();
        assert!(error.contains("imageRegion: regions belong to the pixels"), "{error}");
    }
}
