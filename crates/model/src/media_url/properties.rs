//! Property tests of the grammar: every path prints to one spelling, and every spelling parses to it.

use proptest::prelude::*;
use proptest::sample::select;
use strum::IntoEnumIterator;

use crate::media_url::{
    AssociationKey, DocumentExtension, MediaPath, MediaTarget, PictureOperation,
    RenditionExtension,
};
use crate::{
    CropSpec, ItemId, ItemKey, MediaType, PresetName, RenditionName, RenditionUsage,
    RenditionVariant, ResizeSpec, Size,
};

/// Generates texts from the pieces of ids and tokens, in any order.
fn id_like() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "B7",
        "0",
        "-",
        "_",
        "x1",
        "-crop",
        "-crop_w1",
        "crop",
        "_w",
        "-watermark",
        "_Normal",
        "Preview",
        "_NormalHires",
        "_blackandwhite",
        "_Web",
        "-cutpaste",
        "-InDesign",
        "-Cropped",
    ];
    let mixed = prop::collection::vec(select(pieces.to_vec()), 1..6).prop_map(|p| p.concat());
    // Random letters alone would hardly ever form a token.
    prop_oneof![mixed, "[A-Za-z0-9][A-Za-z0-9_-]{0,127}"]
}

fn any_key() -> impl Strategy<Value = ItemKey> {
    let ids = id_like().prop_filter_map("no id", |text| ItemId::parse(&text).ok());
    (select(MediaType::iter().collect::<Vec<_>>()), ids)
        .prop_map(|(kind, id)| ItemKey::new(kind, id))
}

fn any_name() -> impl Strategy<Value = RenditionName> {
    let variants = select(RenditionVariant::iter().collect::<Vec<_>>());
    let usages = select(RenditionUsage::iter().collect::<Vec<_>>());
    (variants, usages).prop_map(|(variant, usage)| RenditionName::new(variant, usage))
}

fn any_association() -> impl Strategy<Value = Option<AssociationKey>> {
    let keys = "[A-Za-z0-9][A-Za-z0-9-]{0,63}";
    prop::option::of(keys.prop_filter_map("no key", |text| AssociationKey::parse(&text).ok()))
}

fn any_crop() -> impl Strategy<Value = CropSpec> {
    let side = || prop::option::of(prop_oneof![1..5000_u32, 1..=u32::MAX]);
    let offset = || prop_oneof![0..5000_u32, any::<u32>()];
    (side(), side(), offset(), offset())
        .prop_map(|(w, h, x, y)| CropSpec::new(w, h, x, y).unwrap())
}

fn any_resize() -> impl Strategy<Value = ResizeSpec> {
    let side = || prop_oneof![1..5000_u32, 1..=u32::MAX];
    prop_oneof![
        side().prop_map(|width| ResizeSpec::Fit { width: Some(width), height: None }),
        (prop::option::of(side()), side())
            .prop_map(|(width, height)| ResizeSpec::Fit { width, height: Some(height) }),
        (side(), side()).prop_map(|(width, height)| ResizeSpec::Fill(Size { width, height })),
        "[a-z][a-z0-9]{0,31}".prop_map(|name| {
            ResizeSpec::Preset(PresetName::parse(&name).expect("the pattern of names"))
        }),
    ]
}

/// Generates operations in any order; [`any_path`] leaves out those that cannot be combined.
fn any_operations() -> impl Strategy<Value = Vec<PictureOperation>> {
    (any_crop(), any_resize()).prop_flat_map(|(crop, resize)| {
        let all = vec![
            PictureOperation::Crop(crop),
            PictureOperation::Watermark,
            PictureOperation::Resize(resize),
        ];
        prop::sample::subsequence(all, 0..=3).prop_shuffle()
    })
}

/// Generates every path that the constructors can build, without operations that the extension refuses.
fn any_path() -> impl Strategy<Value = MediaPath> {
    let renditions = (
        any_key(),
        any_association(),
        any_name(),
        select(RenditionExtension::all().collect::<Vec<_>>()),
    )
        .prop_map(|(key, association, name, extension)| match association {
            Some(association) => MediaPath::association(key, association, name, extension),
            None => MediaPath::rendition(key, name, extension),
        });
    let documents = (any_key(), select(DocumentExtension::iter().collect::<Vec<_>>()))
        .prop_map(|(key, extension)| MediaPath::document(key, extension));
    let bare = prop_oneof![
        1 => any_key().prop_map(|key| MediaPath { key, target: MediaTarget::Item(None) }),
        1 => any_key().prop_map(|key| MediaPath { key, target: MediaTarget::Pricelist }),
        8 => renditions,
        3 => documents,
    ];
    (bare, any_operations()).prop_map(|(path, operations)| {
        operations
            .into_iter()
            // A refused operation leaves the path as it was,
            // so that every generated path is valid.
            .fold(path, |path, operation| path.clone().with_operation(operation).unwrap_or(path))
    })
}

fn respell_resize(resize: &ResizeSpec, choose: &mut impl FnMut(usize) -> usize) -> String {
    match *resize {
        ResizeSpec::Fit { width: Some(width), height: Some(height) } if choose(2) == 1 => {
            format!("-fit_h{height}_w0{width}")
        }
        ResizeSpec::Fill(Size { width, height }) if choose(2) == 1 => {
            format!("-fill_h0{height}_w{width}")
        }
        ResizeSpec::Fit { .. } | ResizeSpec::Fill(_) | ResizeSpec::Preset(_) => resize.to_string(),
    }
}

/// Spells a path in another way: case of names, order and leading zeros of a crop, optional words.
///
/// `choose(n)` picks one of `n` alternatives.
fn respell(path: &MediaPath, mut choose: impl FnMut(usize) -> usize) -> String {
    let (operations, suffix, extension) = match path.target() {
        MediaTarget::Item(_) | MediaTarget::Pricelist => return path.print(),
        MediaTarget::Document(file) => {
            let crop = file.crop.map(PictureOperation::Crop);
            (crop.into_iter().collect(), String::new(), file.extension.as_str())
        }
        MediaTarget::Rendition(file) => {
            let name = file.name.to_string();
            let extension = file.extension;
            let suffix = match choose(2) {
                1 if name == "NormalHires" && file.association.is_none() => String::new(),
                1 if name == "BlackAndWhiteHires" && extension.accepts_lone_variant() => {
                    "_BlackAndWhite".to_owned()
                }
                1 => format!("_{}", name.replace("Watermark", "Watermarked")),
                _ => format!("_{name}"),
            };
            (file.operations().to_vec(), suffix, extension.as_str())
        }
    };
    let mut tail = String::new();
    for operation in operations {
        tail.push_str(&match operation {
            PictureOperation::Watermark => "-watermark".to_owned(),
            PictureOperation::Crop(crop) => respell_crop(crop, &mut choose),
            PictureOperation::Resize(resize) => respell_resize(&resize, &mut choose),
        });
    }
    tail.push_str(&suffix);
    tail.push_str(extension);
    let flip = |c: char| if choose(2) == 1 { c.to_ascii_uppercase() } else { c };
    let tail: String = tail.chars().map(flip).collect();
    let association = match path.target() {
        MediaTarget::Rendition(file) => file.association.as_ref().map(|key| format!("/{key}")),
        MediaTarget::Item(_) | MediaTarget::Pricelist | MediaTarget::Document(_) => None,
    };
    format!("{}{}{tail}", path.key(), association.unwrap_or_default())
}

fn respell_crop(crop: CropSpec, mut choose: impl FnMut(usize) -> usize) -> String {
    let mut rest: Vec<(&str, u32)> = vec![("x", crop.x()), ("y", crop.y())];
    rest.extend(crop.width().map(|width| ("w", width)));
    rest.extend(crop.height().map(|height| ("h", height)));
    // An offset of zero may be left out as long as something is written.
    if choose(2) == 1 && rest.len() > 2 {
        rest.retain(|&(name, value)| value > 0 || name == "w" || name == "h");
    }
    let mut text = "-crop".to_owned();
    while !rest.is_empty() {
        let (name, value) = rest.swap_remove(choose(rest.len()));
        let zeros = "0".repeat(choose(10));
        text.push_str(&format!("_{name}{zeros}{value}"));
    }
    text
}

proptest! {
    #[test]
    fn a_path_parses_as_it_prints(path in any_path()) {
        let text = path.print();
        prop_assert!(text.len() < 400, "{}", text);
        prop_assert_eq!(MediaPath::parse(&text), Ok(path));
    }

    #[test]
    fn every_spelling_prints_the_canonical_one(
        path in any_path(),
        choices in prop::collection::vec(any::<u8>(), 64),
    ) {
        let mut next = choices.into_iter().cycle();
        let spelled = respell(&path, |ways| usize::from(next.next().unwrap()) % ways);
        let parsed = MediaPath::parse(&spelled);
        prop_assert_eq!(parsed.map(|parsed| parsed.print()), Ok(path.print()), "{}", spelled);
    }

    #[test]
    fn an_id_is_found_exactly_when_it_is_legal(
        text in id_like(),
        extension in select(vec!["", ".jpg", ".pdf", ".eps", ".mp4", ".json", ".xml", ".zip",
            "-cutpaste.txt", "-indesign.txt", "/pricelist", "/a000_NormalPreview.jpg"]),
    ) {
        let found = MediaPath::parse(&format!("image/{text}{extension}"));
        let whole = found.as_ref().is_ok_and(|path| path.key().id.as_str() == text);
        prop_assert_eq!(whole, ItemId::parse(&text).is_ok(), "{:?}", found);
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in any::<String>()) {
        let _ = MediaPath::parse(&text).map(|path| path.print());
    }

    #[test]
    fn what_parses_prints_a_path_that_is_equal(
        text in "(image|text)/[aB0_.-]{1,9}(-crop|-watermark|_[whxy][0-9]{1,3}|_NormalPreview|/a0){0,5}\
            (\\.jpg|\\.JSON|\\.pdf|\\.txt|)",
    ) {
        if let Ok(path) = MediaPath::parse(&text) {
            prop_assert_eq!(MediaPath::parse(&path.print()), Ok(path));
        }
    }
}
