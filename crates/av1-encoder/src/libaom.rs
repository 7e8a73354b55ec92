//! Calls libaom; the only `unsafe` code of the crate.
//!
//! An [`Encoder`] owns an initialised context and destroys it when dropped. It never leaves [`encode`], so only
//! one thread uses a context.

#![expect(unsafe_code, reason = "functions of libaom")]

use std::ffi::{CStr, c_int, c_long, c_ulong};
use std::mem::MaybeUninit;
use std::slice;

use libaom_sys as aom;

use crate::planes::YuvPlanes;
use crate::{Av1Error, Av1Options, QUANTIZER_MAX, SPEED_MAX};

/// Matrix coefficients of BT.601 (ITU-T H.273, code 6).
const MATRIX_BT601: u8 = 6;
/// Full range: 0 is black and 255 is white.
const FULL_RANGE: u8 = 1;
/// Rate-distortion decisions by SSIM (`aom_tune_metric`): half a point of SSIMULACRA2 more than with PSNR at equal
/// bytes.
const TUNE_SSIM: u8 = 1;
/// The range of quantization matrices, from 0 (steep) to 15 (flat), gains a further half point. libaom's own
/// range, 5 to 9, loses one point.
const QM_LEVEL_MIN: u8 = 8;
const QM_LEVEL_MAX: u8 = 15;

/// An option of the encoder, which accepts one argument of the size of `int`.
#[derive(Clone, Copy)]
struct EncoderOption(aom::aome_enc_control_id);

impl EncoderOption {
    // `aomcx.h` lists the types of the arguments: all are `int` or `unsigned int`.
    const SPEED: Self = Self(aom::AOME_SET_CPUUSED);
    const QUANTIZER: Self = Self(aom::AOME_SET_CQ_LEVEL);
    const COLOR_RANGE: Self = Self(aom::AV1E_SET_COLOR_RANGE);
    const MATRIX_COEFFICIENTS: Self = Self(aom::AV1E_SET_MATRIX_COEFFICIENTS);
    const TUNING: Self = Self(aom::AOME_SET_TUNING);
    const ENABLE_MATRICES: Self = Self(aom::AV1E_SET_ENABLE_QM);
    const MATRIX_LEVEL_MIN: Self = Self(aom::AV1E_SET_QM_MIN);
    const MATRIX_LEVEL_MAX: Self = Self(aom::AV1E_SET_QM_MAX);
}

/// Encodes the planes of a picture as a stream of OBUs, with a temporal delimiter.
pub(crate) fn encode(planes: &YuvPlanes, options: Av1Options) -> Result<Vec<u8>, Av1Error> {
    let mut encoder = Encoder::new(planes)?;
    encoder.set(EncoderOption::SPEED, options.speed.min(SPEED_MAX))?;
    encoder.set(EncoderOption::QUANTIZER, options.quantizer.min(QUANTIZER_MAX))?;
    encoder.set(EncoderOption::COLOR_RANGE, FULL_RANGE)?;
    encoder.set(EncoderOption::MATRIX_COEFFICIENTS, MATRIX_BT601)?;
    encoder.set(EncoderOption::TUNING, TUNE_SSIM)?;
    encoder.set(EncoderOption::ENABLE_MATRICES, 1)?;
    encoder.set(EncoderOption::MATRIX_LEVEL_MIN, QM_LEVEL_MIN)?;
    encoder.set(EncoderOption::MATRIX_LEVEL_MAX, QM_LEVEL_MAX)?;
    encoder.encode(Some(planes))?;
    let mut stream = encoder.packets();
    // Without lookahead the frame is complete after the first call. The flush costs nothing and avoids relying on
    // that.
    encoder.encode(None)?;
    stream.extend(encoder.packets());
    Ok(stream)
}

/// An initialised encoder of one picture.
struct Encoder {
    /// Boxed, because libaom may keep the address of the context.
    context: Box<aom::aom_codec_ctx_t>,
}

impl Encoder {
    fn new(planes: &YuvPlanes) -> Result<Encoder, Av1Error> {
        let config = configuration(planes)?;
        // SAFETY: all fields are numbers and pointers, for which zeros are valid values. The function clears the
        // structure itself before it uses it.
        let zeroed = unsafe { MaybeUninit::<aom::aom_codec_ctx_t>::zeroed().assume_init() };
        let mut context = Box::new(zeroed);
        let version = c_int::try_from(aom::AOM_ENCODER_ABI_VERSION).expect("a small constant");
        // SAFETY: both structures are initialised and outlive the call, which copies the configuration. The
        // version is the version of the bindings, and the library checks their layout with it. After a failure the
        // library has freed the context, so no `Encoder` is created that would free it again.
        let code = unsafe {
            let interface = aom::aom_codec_av1_cx();
            aom::aom_codec_enc_init_ver(&raw mut *context, interface, &config, 0, version)
        };
        check("aom_codec_enc_init", code)?;
        Ok(Encoder { context })
    }

    /// Sets an option of the encoder.
    fn set(&mut self, option: EncoderOption, value: u8) -> Result<(), Av1Error> {
        let control = c_int::try_from(option.0).expect("the numbers of options are small");
        // SAFETY: the context is initialised. Every `EncoderOption` accepts one argument of the size of `int`. C
        // reads it as the same number whether signed or unsigned, because a `u8` is not negative.
        let code =
            unsafe { aom::aom_codec_control(&raw mut *self.context, control, c_int::from(value)) };
        check("aom_codec_control", code)
    }

    /// Encodes a picture, or with `None` flushes the encoder.
    fn encode(&mut self, planes: Option<&YuvPlanes>) -> Result<(), Av1Error> {
        let image = planes.map(image).transpose()?;
        let pointer = image.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let time: i64 = 0;
        let duration: c_ulong = 1;
        let flags: c_long = 0;
        // SAFETY: the context is initialised. The pointer is null or refers to an image whose planes are borrowed
        // until the end of this function. The library copies the picture, whose size `image` checked, and does not
        // write to it because denoising is off.
        let code = unsafe {
            aom::aom_codec_encode(&raw mut *self.context, pointer, time, duration, flags)
        };
        check("aom_codec_encode", code)
    }

    /// Copies the output since the last call.
    fn packets(&mut self) -> Vec<u8> {
        let mut stream = Vec::new();
        let mut position: aom::aom_codec_iter_t = std::ptr::null();
        loop {
            // SAFETY: the context is initialised, and the position is null or from the last call.
            let packet =
                unsafe { aom::aom_codec_get_cx_data(&raw mut *self.context, &raw mut position) };
            // SAFETY: the pointer is null or refers to a packet that is valid until the next call.
            let Some(packet) = (unsafe { packet.as_ref() }) else { return stream };
            if packet.kind != aom::AOM_CODEC_CX_FRAME_PKT {
                continue;
            }
            // SAFETY: a packet of this kind holds `frame`.
            let frame = unsafe { packet.data.frame };
            if frame.buf.is_null() || frame.sz == 0 {
                continue;
            }
            // SAFETY: the buffer has `sz` initialised bytes and is valid until the next call.
            let bytes = unsafe { slice::from_raw_parts(frame.buf.cast::<u8>(), frame.sz) };
            stream.extend_from_slice(bytes);
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: the context is initialised, and nothing uses it after this. The result is ignored, because it
        // only reports whether the context was initialised.
        unsafe { aom::aom_codec_destroy(&raw mut *self.context) };
    }
}

/// The settings for one still picture with constant quality, on one thread.
fn configuration(planes: &YuvPlanes) -> Result<aom::aom_codec_enc_cfg_t, Av1Error> {
    let mut config = MaybeUninit::<aom::aom_codec_enc_cfg_t>::zeroed();
    // SAFETY: the interface is a constant of the library, and the structure is writable. Its fields are numbers
    // and pointers, for which zeros are valid values, so it is initialised in any case.
    let (code, mut config) = unsafe {
        let interface = aom::aom_codec_av1_cx();
        let usage = aom::AOM_USAGE_ALL_INTRA;
        let code = aom::aom_codec_enc_config_default(interface, config.as_mut_ptr(), usage);
        (code, config.assume_init())
    };
    check("aom_codec_enc_config_default", code)?;
    config.g_w = planes.size.width;
    config.g_h = planes.size.height;
    config.g_profile = u32::from(planes.has_full_chroma);
    config.g_bit_depth = aom::AOM_BITS_8;
    config.g_input_bit_depth = 8;
    config.monochrome = u32::from(planes.is_monochrome);
    // The output bytes depend on the number of threads, so it is fixed.
    config.g_threads = 1;
    config.g_limit = 1;
    config.g_lag_in_frames = 0;
    config.rc_end_usage = aom::AOM_Q;
    Ok(config)
}

/// Describes the planes as an image of the library, which borrows them without a lifetime.
fn image(planes: &YuvPlanes) -> Result<aom::aom_image_t, Av1Error> {
    let format =
        if planes.has_full_chroma { aom::AOM_IMG_FMT_I444 } else { aom::AOM_IMG_FMT_I420 };
    let mut image = MaybeUninit::<aom::aom_image_t>::zeroed();
    let width = planes.size.width;
    let height = planes.size.height;
    let first = planes.planes[0].as_ptr().cast_mut();
    // SAFETY: the structure is writable. The function stores the pointer without dereferencing it, and fills in
    // the fields that follow from format and size. Zeros are valid values of all fields.
    let mut image = unsafe {
        let wrapped = aom::aom_img_wrap(image.as_mut_ptr(), format, width, height, 1, first);
        if wrapped.is_null() {
            let cause = "invalid size".to_owned();
            return Err(Av1Error::Library { call: "aom_img_wrap", cause });
        }
        image.assume_init()
    };
    image.monochrome = c_int::from(planes.is_monochrome);
    image.range = u32::from(FULL_RANGE);
    let sizes = [planes.size, planes.chroma_size, planes.chroma_size];
    for (index, (plane, size)) in planes.planes.iter().zip(sizes).enumerate() {
        // The safety argument of `aom_codec_encode` relies on this: each plane has all samples of its size.
        assert_eq!(u64::try_from(plane.len()), Ok(size.pixels()), "plane {index} is complete");
        image.planes[index] = plane.as_ptr().cast_mut();
        image.stride[index] = c_int::try_from(size.width).expect("at most 16,384");
    }
    Ok(image)
}

/// Turns an error code into an error with libaom's description of the code.
fn check(call: &'static str, code: aom::aom_codec_err_t) -> Result<(), Av1Error> {
    if code == aom::AOM_CODEC_OK {
        return Ok(());
    }
    // SAFETY: the function returns a constant text for every code, unknown ones included.
    let cause = unsafe { CStr::from_ptr(aom::aom_codec_err_to_string(code)) };
    Err(Av1Error::Library { call, cause: cause.to_string_lossy().into_owned() })
}
