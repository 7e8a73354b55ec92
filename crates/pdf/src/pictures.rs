//! Converts images and shadings during the walk, and creates the new objects that they need.

use std::rc::Rc;

use lopdf::{Dictionary, Object, Stream, dictionary};

use crate::PdfError;
use crate::bitmap::{self, DocumentImage, ImageMask, grey_image};
use crate::filter::deflate;
use crate::number::{count, entry};
use crate::shading::{self, GreyFunction, grey_shading};
use crate::walk::{DocumentWalk, PdfObjectKind};

impl DocumentWalk<'_> {
    pub(super) fn image(
        &mut self,
        mut stream: Stream,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        let matte = {
            let picture =
                DocumentImage { dictionary: &stream.dict, content: &stream.content, resources };
            // Converted first, while the dictionary still describes the colour image.
            let matte = bitmap::matte(&mut self.scope, &picture)?;
            if let Some(converted) = grey_image(&mut self.scope, &picture)? {
                stream.dict = converted.dictionary;
                stream.set_content(converted.content);
                self.mask(&mut stream.dict, converted.mask);
            }
            matte
        };
        if let Some(matte) = matte {
            self.matte(&mut stream.dict, matte);
        }
        // A reader may choose an alternate for print, so it has to be grey as well.
        if let Ok(Object::Array(alternates)) = stream.dict.get(b"Alternates") {
            let mut alternates = alternates.clone();
            for alternate in &mut alternates {
                if let Object::Dictionary(alternate) = alternate {
                    self.convert_one(alternate, "Image", PdfObjectKind::External, resources)?;
                }
            }
            stream.dict.set("Alternates", alternates);
        }
        Ok(Object::Stream(stream))
    }

    /// Adds the mask that a converted image needs.
    fn mask(&mut self, image: &mut Dictionary, mask: Option<ImageMask>) {
        let width = count(self.scope.document, image, b"Width").unwrap_or(0);
        let height = count(self.scope.document, image, b"Height").unwrap_or(0);
        let mut dictionary = dictionary! {
            "Type" => "XObject",
            "Subtype" => "Image",
            "Width" => i64::try_from(width).unwrap_or(i64::MAX),
            "Height" => i64::try_from(height).unwrap_or(i64::MAX),
            "Filter" => "FlateDecode",
        };
        let (key, bytes) = match mask {
            None => return,
            Some(ImageMask::Stencil(bytes)) => {
                dictionary.set("ImageMask", true);
                dictionary.set("BitsPerComponent", 1);
                ("Mask", bytes)
            }
            Some(ImageMask::Soft(bytes)) => {
                dictionary.set("ColorSpace", "DeviceGray");
                dictionary.set("BitsPerComponent", 8);
                ("SMask", bytes)
            }
        };
        let stream = Stream::new(dictionary, deflate(&bytes));
        let reference = self.add(Object::Stream(stream));
        image.set(key, reference);
    }

    /// Replaces the soft mask of an image with a copy in which the matte is grey.
    fn matte(&mut self, image: &mut Dictionary, matte: f32) {
        if let Object::Stream(mask) = entry(self.scope.document, image, b"SMask") {
            // A different image may share the mask with a matte of its own.
            let mut mask = mask.clone();
            mask.dict.set("Matte", vec![Object::Real(matte)]);
            let reference = self.add(Object::Stream(mask));
            image.set("SMask", reference);
        }
    }

    pub(super) fn shading(
        &mut self,
        object: Object,
        resources: &Dictionary,
    ) -> Result<Object, PdfError> {
        let Some(converted) = grey_shading(&mut self.scope, &object, resources)? else {
            return Ok(object);
        };
        let shading::ConvertedShading { mut dictionary, content, function } = converted;
        if let Some(function) = function {
            let function = self.function(function);
            dictionary.set("Function", function);
        }
        Ok(match content {
            Some(content) => Object::Stream(Stream::new(dictionary, content)),
            None => Object::Dictionary(dictionary),
        })
    }

    /// Converts a function to an object. The nesting is the same as in the parsed function, which is limited.
    fn function(&mut self, function: GreyFunction) -> Object {
        match function {
            GreyFunction::Plain(dictionary) => Object::Dictionary(dictionary),
            GreyFunction::Table(stream) => self.add(Object::Stream(stream)),
            GreyFunction::Stitched { mut dictionary, functions } => {
                let parts: Vec<Object> =
                    functions.into_iter().map(|function| self.function(function)).collect();
                dictionary.set("Functions", parts);
                Object::Dictionary(dictionary)
            }
        }
    }
}
