//! Calls libwebp, the encoder in C; the only `unsafe` code of the crate.
//!
//! A [`Picture`] and an [`Output`] own the memory that the library allocated and free it when dropped. Neither
//! leaves [`encode`], so only one thread uses each.

#![expect(unsafe_code, reason = "functions of libwebp")]

use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::slice;

use geometry::Size;
use libwebp_sys as webp;

use crate::{METHOD_MAX, WebpError, WebpOptions};

/// Encodes `rgb` as a WebP file. `rgb` must have exactly three bytes for each pixel of `size`, whose sides are at most
/// [`SIDE_PX_MAX`](crate::SIDE_PX_MAX).
pub(crate) fn encode(size: Size, rgb: &[u8], options: WebpOptions) -> Result<Vec<u8>, WebpError> {
    let config = configuration(options)?;
    let mut picture = Picture::import(size, rgb)?;
    let mut output = Output::new();
    picture.0.writer = Some(webp::WebPMemoryWrite);
    picture.0.custom_ptr = (&raw mut *output.0).cast();
    // SAFETY: configuration and picture are initialised, and the picture has its planes. `WebPMemoryWrite` expects
    // a `WebPMemoryWriter` behind `custom_ptr`; `output` outlives the call and nothing else refers to it
    // meanwhile.
    let is_encoded = unsafe { webp::WebPEncode(&config, &raw mut *picture.0) };
    picture.check("WebPEncode", is_encoded)?;
    Ok(output.copy())
}

/// The settings: one thread, and the library's defaults apart from quality and method.
fn configuration(options: WebpOptions) -> Result<webp::WebPConfig, WebpError> {
    let mut config = webp::WebPConfig::new()
        .map_err(|()| WebpError::Library { call: "WebPConfigInit", code: 0 })?;
    // The library refuses numbers outside its range, and `clamp` does not change a NaN.
    let is_number = !options.quality.is_nan();
    config.quality = if is_number { options.quality.clamp(0.0, 100.0) } else { 0.0 };
    config.method = c_int::from(options.method.min(METHOD_MAX));
    config.thread_level = 0;
    Ok(config)
}

/// A picture of three planes, brightness and two of chroma, which the library allocated.
///
/// Boxed, because the library receives its address more than once, and the content of a box does not move.
struct Picture(Box<webp::WebPPicture>);

impl Picture {
    /// Converts RGB to planes whose chroma has half the width and height (4:2:0).
    fn import(size: Size, rgb: &[u8]) -> Result<Picture, WebpError> {
        // The safety argument below relies on this. The caller has refused other lengths with an error.
        assert_eq!(u64::try_from(rgb.len()), Ok(size.pixels() * 3), "three bytes a pixel");
        let empty = webp::WebPPicture::new()
            .map_err(|()| WebpError::Library { call: "WebPPictureInit", code: 0 })?;
        let mut picture = Picture(Box::new(empty));
        // The import below then writes the planes, not a copy of the RGB pixels.
        picture.0.use_argb = 0;
        picture.0.width = c_int::try_from(size.width).expect("at most SIDE_PX_MAX");
        picture.0.height = c_int::try_from(size.height).expect("at most SIDE_PX_MAX");
        let stride = picture.0.width * 3;
        // SAFETY: the picture is initialised. The library reads `height` rows of `width` times three bytes, one
        // every `stride` bytes, which is the length of `rgb` as asserted above.
        let is_imported =
            unsafe { webp::WebPPictureImportRGB(&raw mut *picture.0, rgb.as_ptr(), stride) };
        picture.check("WebPPictureImportRGB", is_imported)?;
        Ok(picture)
    }

    /// Converts a result of 0 to an error with the picture's code.
    fn check(&self, call: &'static str, result: c_int) -> Result<(), WebpError> {
        if result != 0 {
            return Ok(());
        }
        Err(WebpError::Library { call, code: self.0.error_code as i32 })
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: the picture is initialised, and the function frees the memory that the library allocated for it,
        // if any.
        unsafe { webp::WebPPictureFree(&raw mut *self.0) };
    }
}

/// The buffer for the file, which the library grows. Boxed for the same reason as [`Picture`].
struct Output(Box<webp::WebPMemoryWriter>);

impl Output {
    fn new() -> Output {
        let mut writer = MaybeUninit::<webp::WebPMemoryWriter>::zeroed();
        // SAFETY: the structure is writable, the function sets all fields that are read, and zeros are valid
        // values of the other fields.
        let writer = unsafe {
            webp::WebPMemoryWriterInit(writer.as_mut_ptr());
            writer.assume_init()
        };
        Output(Box::new(writer))
    }

    fn copy(&self) -> Vec<u8> {
        if self.0.mem.is_null() {
            return Vec::new();
        }
        // SAFETY: the library has written `size` bytes at `mem`, and nothing changes them while `self` is
        // borrowed.
        unsafe { slice::from_raw_parts(self.0.mem, self.0.size) }.to_vec()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // SAFETY: the writer is initialised and frees its own buffer, if it has one.
        unsafe { webp::WebPMemoryWriterClear(&raw mut *self.0) };
    }
}
