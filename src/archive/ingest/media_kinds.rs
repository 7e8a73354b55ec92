//! Ingests PDF, EPS and MP4 files, and creates their previews.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::{
    FileName, Ingest, IngestError, IngestResult, LoadedPhotograph, catch_panics, photograph,
};
use crate::runtime::limits::PROGRAM_OUTPUT_BYTES_MAX;
use crate::runtime::programs::{PdfSummary, PdfTask, ProgramError};
use formats::mp4::{VideoError, VideoLimits, facts};
use model::item::{Asset, AssetFile, AssetGroup, GraphicFile, VideoFile};
use model::{MediaType, RenditionExtension, RenditionName, Size};

/// Bytes at the beginning of an EPS that are searched for its comments.
const EPS_HEAD_BYTES: u64 = 64 * 1024;
/// Position of the still of a video, in milliseconds; for a shorter video, the middle.
const STILL_AT_MS: u64 = 1000;

const HIRES: RenditionName = RenditionName::NORMAL_HIRES;
const GREY_HIRES: RenditionName = RenditionName::GREY_HIRES;
const PREVIEW: RenditionName = RenditionName::NORMAL_PREVIEW;
const THUMBNAIL: RenditionName = RenditionName::NORMAL_THUMBNAIL;

/// The signature of a PDF, expected within its first bytes.
const PDF_MAGIC: &[u8] = b"%PDF-";
/// The signatures of an EPS, without and with a preview for DOS.
const EPS_MAGIC: &[u8] = b"%!PS-Adobe";
const DOS_EPS_MAGIC: &[u8] = &[0xC5, 0xD0, 0xD3, 0xC6];

/// An ingested file of an item, with its warnings.
pub(super) type IngestedFile = (Asset, Vec<String>);
/// The stored file of an asset, and warnings about it.
type StoredFile = (AssetFile, Vec<String>);

impl Ingest {
    /// Ingests one file of an item: checks, measures and stores it.
    pub(super) fn ingest_file(&self, name: &FileName, path: &Path) -> IngestResult<IngestedFile> {
        let (file, warnings) = catch_panics(|| match name.extension {
            RenditionExtension::Image(_) | RenditionExtension::Auto => {
                let loaded = self.read_photograph(path)?;
                let (picture, warnings) = self.store(loaded, name.name)?;
                Ok((AssetFile::Picture(picture), warnings))
            }
            RenditionExtension::Pdf => self.ingest_pdf(name.name, path),
            RenditionExtension::Eps => self.ingest_eps(name.name, path),
            RenditionExtension::Mp4 => self.ingest_video(name.name, path),
        })?;
        let association = name.association.clone();
        Ok((Asset { association, made: false, file }, warnings))
    }

    /// Ingests a PDF. A PDF that cannot be parsed is stored as well, and served unchanged.
    fn ingest_pdf(&self, name: RenditionName, path: &Path) -> IngestResult<StoredFile> {
        // Readers accept the signature anywhere in the first 1024 bytes (PDF Reference 1.7,
        // appendix H, note 13).
        let head = self.head(path, 1024)?;
        if !head.windows(PDF_MAGIC.len()).any(|window| window == PDF_MAGIC) {
            return Err(IngestError::Picture(
                "is not a PDF: no %PDF- at its beginning".to_owned(),
            ));
        }
        let (points, warning) = match self.programs.pdf_facts(path) {
            Ok(facts) => (Some((facts.width_pt, facts.height_pt)), active_content(&facts)),
            // A file that only other readers can open, such as an encrypted file, may contain anything.
            Err(cause) => {
                let reason = program_message(cause)?;
                (None, Some(format!("its pages cannot be read: {reason}")))
            }
        };
        if let Some(reason) = warning.as_ref().filter(|_| self.limits.refuses_active_pdf) {
            return Err(IngestError::Picture(format!("{reason} (media.pdf_active_content)")));
        }
        // Stored after the checks, so that a refused file leaves nothing in the store.
        let (blob, length) = self.originals.store_file(path)?;
        let format = RenditionExtension::Pdf;
        let file = GraphicFile { name, blob, length, format, points };
        Ok((AssetFile::Graphic(file), Vec::from_iter(warning)))
    }

    /// Ingests an EPS. It is never executed; its size is read from its comments.
    fn ingest_eps(&self, name: RenditionName, path: &Path) -> IngestResult<StoredFile> {
        let head = self.head(path, EPS_HEAD_BYTES)?;
        if !head.starts_with(EPS_MAGIC) && !head.starts_with(DOS_EPS_MAGIC) {
            return Err(IngestError::Picture(
                "is not an EPS: it begins neither with %!PS-Adobe nor with the DOS header"
                    .to_owned(),
            ));
        }
        let points = bounding_box(&head);
        let warnings = match points {
            Some(_) => Vec::new(),
            None => vec!["has no %%BoundingBox, so its size is not known".to_owned()],
        };
        let (blob, length) = self.originals.store_file(path)?;
        let format = RenditionExtension::Eps;
        Ok((AssetFile::Graphic(GraphicFile { name, blob, length, format, points }), warnings))
    }

    fn ingest_video(&self, name: RenditionName, path: &Path) -> IngestResult<StoredFile> {
        let length = self.length(path)?;
        let file = File::open(path).map_err(IngestError::Unreadable)?;
        let facts = facts(&mut BufReader::new(file), length, &VideoLimits::default())
            .map_err(unreadable_video)?;
        let (blob, length) = self.originals.store_file(path)?;
        let mut warnings = Vec::new();
        if !facts.fast_start {
            warnings.push(
                "has its index at the end, so players load all of it first (ffmpeg's option \
                 -movflags +faststart puts it in front)"
                    .to_owned(),
            );
        }
        let video = VideoFile {
            name,
            blob,
            length,
            shown: Size { width: facts.width, height: facts.height },
            duration_ms: facts.duration_ms,
            bitrate: facts.bitrate_bps,
        };
        Ok((AssetFile::Video(video), warnings))
    }

    /// Creates the missing own files of an item, and returns warnings for the files that cannot be created.
    ///
    /// `files` are the item's incoming files with their paths.
    pub(super) fn create_missing(
        &self,
        media_type: MediaType,
        assets: &mut Vec<Asset>,
        files: &[(FileName, PathBuf)],
    ) -> IngestResult<Vec<String>> {
        if media_type == MediaType::Graphic {
            let pdf = incoming_path(files, HIRES, RenditionExtension::Pdf);
            self.create_from_graphic(assets, pdf)
        } else if media_type == MediaType::Video {
            let hires = incoming_path(files, HIRES, RenditionExtension::Mp4);
            let preview = incoming_path(files, PREVIEW, RenditionExtension::Mp4);
            self.create_from_video(assets, hires, preview)
        } else {
            Ok(Vec::new())
        }
    }

    fn create_from_graphic(
        &self,
        assets: &mut Vec<Asset>,
        pdf: Option<&Path>,
    ) -> IngestResult<Vec<String>> {
        let mut warnings = Vec::new();
        let own = AssetGroup::of_item(assets);
        let points = own.find(HIRES, RenditionExtension::Pdf).and_then(points_of);
        let lacks_picture = own.whole_picture().is_none();
        let lacks_grey = own.find(GREY_HIRES, RenditionExtension::Pdf).is_none();
        let Some(pdf) = pdf else {
            if lacks_picture {
                warnings.push(
                    "has no Preview and no Thumbnail: they are made from NormalHires.pdf, or sent \
                     as NormalPreview.jpg"
                        .to_owned(),
                );
            }
            return Ok(warnings);
        };
        if lacks_grey {
            // The output is held in memory, and its length is not known in advance.
            let _share = self.memory.acquire(PROGRAM_OUTPUT_BYTES_MAX);
            match self.programs.pdf(PdfTask::Grey, pdf, 1) {
                Ok(grey) => {
                    let length = grey.len() as u64;
                    let blob = self.originals.store_bytes(&grey)?;
                    let format = RenditionExtension::Pdf;
                    let file = GraphicFile { name: GREY_HIRES, blob, length, format, points };
                    assets.push(generated(AssetFile::Graphic(file)));
                }
                Err(cause) => warnings.push(missing("BlackAndWhiteHires.pdf", cause)?),
            }
        }
        if lacks_picture {
            match self.programs.pdf(PdfTask::Page, pdf, self.limits.page_px) {
                Ok(jpeg) => warnings.extend(self.store_created(assets, PREVIEW, jpeg)?),
                Err(cause) => warnings.push(missing("the Preview and the Thumbnail", cause)?),
            }
        }
        Ok(warnings)
    }

    fn create_from_video(
        &self,
        assets: &mut Vec<Asset>,
        hires: Option<&Path>,
        preview: Option<&Path>,
    ) -> IngestResult<Vec<String>> {
        let mut warnings = Vec::new();
        let lacks_still = AssetGroup::of_item(assets).whole_picture().is_none();
        let source = preview.or(hires);
        match (preview, hires) {
            (Some(_), _) => {}
            (None, Some(hires)) => match self.create_video_preview(hires)? {
                Ok(video) => assets.push(generated(video)),
                Err(cause) => warnings.push(missing("NormalPreview.mp4", cause)?),
            },
            (None, None) => warnings.push("has no NormalPreview.mp4".to_owned()),
        }
        if lacks_still && let Some(source) = source {
            // A short video may end before the usual position of the still.
            let duration = assets.iter().find_map(duration_ms).unwrap_or_default();
            match self.programs.video_still(source, STILL_AT_MS.min(duration / 2)) {
                Ok(jpeg) => warnings.extend(self.store_created(assets, THUMBNAIL, jpeg)?),
                Err(cause) => warnings.push(missing("NormalThumbnail.jpg", cause)?),
            }
        }
        Ok(warnings)
    }

    fn create_video_preview(&self, hires: &Path) -> IngestResult<Result<AssetFile, ProgramError>> {
        let target = self.originals.store.temporary("mp4");
        let outcome = self.programs.video_preview(hires, &target, self.limits.video_px);
        let ingested = match outcome {
            // The output of the program is checked like an incoming file.
            Ok(()) => self.ingest_video(PREVIEW, &target).map(|(file, _)| Ok(file)),
            Err(cause) => Ok(Err(cause)),
        };
        // The file does not exist if the program failed early.
        drop(std::fs::remove_file(&target));
        ingested
    }

    /// Stores a generated picture, and returns its warnings.
    fn store_created(
        &self,
        assets: &mut Vec<Asset>,
        name: RenditionName,
        jpeg: Vec<u8>,
    ) -> IngestResult<Vec<String>> {
        let length = jpeg.len() as u64;
        let share = self.memory.acquire(length);
        let picture = photograph::parse(jpeg, &self.limits)?;
        self.fits(&picture, length)?;
        let (picture, warnings) = self.store(LoadedPhotograph { picture, share }, name)?;
        assets.push(generated(AssetFile::Picture(picture)));
        Ok(warnings)
    }

    /// Reads the first bytes of a file, which must be neither empty nor too large.
    fn head(&self, path: &Path, bytes: u64) -> IngestResult<Vec<u8>> {
        self.length(path)?;
        let mut head = Vec::new();
        File::open(path)
            .and_then(|file| file.take(bytes).read_to_end(&mut head))
            .map_err(IngestError::Unreadable)?;
        Ok(head)
    }

    fn length(&self, path: &Path) -> IngestResult<u64> {
        let found = std::fs::metadata(path).map_err(IngestError::Unreadable)?.len();
        if found == 0 {
            return Err(IngestError::Empty);
        }
        let limit = self.limits.file_bytes_max;
        IngestError::check_limit(found, limit, "bytes", "media.file_bytes_max")?;
        Ok(found)
    }
}

/// Returns the path of the item's own incoming file with this name.
fn incoming_path(
    files: &[(FileName, PathBuf)],
    name: RenditionName,
    extension: RenditionExtension,
) -> Option<&Path> {
    let wanted = FileName { association: None, name, extension };
    files.iter().find(|(name, _)| *name == wanted).map(|(_, path)| path.as_path())
}

/// Describes the active content of a PDF, if there is any.
fn active_content(facts: &PdfSummary) -> Option<String> {
    let scripts = facts.scripts.then_some("JavaScript, which readers may run");
    let launches = "an action (Launch) that starts a program or opens a file";
    let launches = facts.launches.then_some(launches);
    let found: Vec<&str> = scripts.into_iter().chain(launches).collect();
    (!found.is_empty()).then(|| format!("has {}", found.join(", and ")))
}

fn generated(file: AssetFile) -> Asset {
    Asset { association: None, made: true, file }
}

/// Returns the warning that a file cannot be created.
fn missing(what: &str, cause: ProgramError) -> IngestResult<String> {
    Ok(format!("{what} cannot be created: {}", program_message(cause)?))
}

/// Returns the message of a program about the file. A failure to run the program is an internal error instead,
/// because a retry may succeed.
fn program_message(cause: ProgramError) -> IngestResult<String> {
    if cause.is_ours() { Err(IngestError::Program(cause)) } else { Ok(cause.to_string()) }
}

fn points_of(asset: &Asset) -> Option<(f32, f32)> {
    match &asset.file {
        AssetFile::Graphic(graphic) => graphic.points,
        AssetFile::Picture(_) | AssetFile::Video(_) => None,
    }
}

fn duration_ms(asset: &Asset) -> Option<u64> {
    match &asset.file {
        AssetFile::Video(video) => Some(video.duration_ms),
        AssetFile::Picture(_) | AssetFile::Graphic(_) => None,
    }
}

/// Turns the refusal of a video file, or a read error, into an ingest error.
fn unreadable_video(cause: VideoError) -> IngestError {
    if let VideoError::Read(cause) = cause {
        return IngestError::Unreadable(cause);
    }
    IngestError::Picture(format!("cannot be read: {cause}"))
}

/// Returns width and height of an EPS drawing in points, from its comments.
fn bounding_box(head: &[u8]) -> Option<(f32, f32)> {
    let text = String::from_utf8_lossy(head);
    // The comment with fractions of a point is exact. The other comment is rounded.
    size_in_comment(&text, "%%HiResBoundingBox:")
        .or_else(|| size_in_comment(&text, "%%BoundingBox:"))
}

/// Returns width and height from the comment of an EPS that begins with `name`.
fn size_in_comment(text: &str, name: &str) -> Option<(f32, f32)> {
    // Comments of an EPS end with CR, LF or both.
    let line = text.split(['\n', '\r']).find_map(|line| line.trim().strip_prefix(name))?;
    let numbers: Vec<f32> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [left, bottom, right, top] = numbers[..] else { return None };
    let width = right - left;
    let height = top - bottom;
    (is_sane_edge(width) && is_sane_edge(height)).then_some((width, height))
}

fn is_sane_edge(points: f32) -> bool {
    // A million points are 350 metres, so a larger number is a mistake.
    points.is_finite() && points > 0.0 && points < 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounding_box_is_that_of_the_comments() {
        let check = |text: &str, expected| assert_eq!(bounding_box(text.as_bytes()), expected);
        check("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 10 20 110 220\n", Some((100.0, 200.0)));
        check(
            "%!PS\r%%BoundingBox: 0 0 10 10\r%%HiResBoundingBox: 0 0 9.5 9.25\r",
            Some((9.5, 9.25)),
        );
        check("%!PS\n%%BoundingBox: (atend)\n", None);
        check("%!PS\n%%BoundingBox: 10 10 0 0\n", None);
        check("%!PS\n%%BoundingBox: 0 0 nan inf\n", None);
    }
}
