//! Other programs that read our output: Pillow with LittleCMS and libwebp, libavif, libvips, exiftool.

use std::{
    fs,
    io::Write,
    process::{Command, Stdio},
};

use super::pictures::Picture;

/// Runs a Python script with `input` on its standard input; returns its standard output.
pub fn python(script: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).args(arguments);
    pipe(&mut command, input)
}

/// Runs a program with `input` on its standard input; returns its standard output.
pub fn pipe(command: &mut Command, input: &[u8]) -> Vec<u8> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("./test installs it");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("ended");
    writer.join().expect("written");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The file as Pillow reads it: an AVIF becomes a PNG with its profile, decoded by libavif.
pub fn readable(file: &[u8]) -> Vec<u8> {
    if !file.get(4..).is_some_and(|rest| rest.starts_with(b"ftypavif")) {
        return file.to_vec();
    }
    let folder = tempfile::tempdir().expect("folder");
    let (avif, png) = (folder.path().join("picture.avif"), folder.path().join("picture.png"));
    fs::write(&avif, file).expect("written");
    let output = Command::new("avifdec").arg(avif).arg(&png).output().expect("./test installs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(png).expect("decoded")
}

const TO_SRGB: &str = "
import io, sys
from PIL import Image, ImageCms
picture = Image.open(io.BytesIO(sys.stdin.buffer.read()))
profile = picture.info.get('icc_profile') or (open(sys.argv[2], 'rb').read() if picture.mode == 'CMYK' else None)
if profile:
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
    picture = ImageCms.profileToProfile(picture, source, ImageCms.createProfile('sRGB'), renderingIntent=intent, outputMode='RGB')
picture = picture.convert('RGB')
long_side = int(sys.argv[1])
if long_side:
    scale = long_side / max(picture.size)
    picture = picture.resize([max(1, round(side * scale)) for side in picture.size], Image.LANCZOS)
sys.stdout.buffer.write(b'%d %d\\n' % picture.size + picture.tobytes())
";

/// The picture in sRGB as decoded by Pillow and LittleCMS, scaled to a long side (0: not scaled). A CMYK picture
/// without a profile is read with the one in `assets/`.
pub fn srgb(jpeg: &[u8], long_px: usize) -> Picture {
    let cmyk = super::checkout("crates/imaging/assets/cmyk.icc");
    let output = python(TO_SRGB, &[&long_px.to_string(), &cmyk.to_string_lossy()], jpeg);
    let end = output.iter().position(|byte| *byte == b'\n').expect("a line");
    let line = std::str::from_utf8(&output[..end]).expect("text");
    let (width, height) = line.split_once(' ').expect("two numbers");
    let pixels = output[end + 1..].to_vec();
    Picture { width: width.parse().unwrap(), height: height.parse().unwrap(), pixels }
}

/// Mode, size and presence of a profile, as Pillow reports them: `RGB 800 600 icc`.
pub fn describe(jpeg: &[u8]) -> String {
    let script = "
import io, sys
from PIL import Image
picture = Image.open(io.BytesIO(sys.stdin.buffer.read()))
picture.load()
print(picture.mode, *picture.size, 'icc' if picture.info.get('icc_profile') else 'plain')
";
    String::from_utf8(python(script, &[], jpeg)).expect("text").trim().to_owned()
}

/// The tags that exiftool reads, by `Group:Tag`.
pub fn exiftool(jpeg: &[u8]) -> serde_json::Map<String, serde_json::Value> {
    let mut command = Command::new("exiftool");
    command.args(["-json", "-G1", "-a", "-n", "-warning", "-all", "-charset", "iptc=UTF8", "-"]);
    let output = pipe(&mut command, jpeg);
    let mut entries: Vec<serde_json::Map<_, _>> = serde_json::from_slice(&output).expect("JSON");
    entries.remove(0)
}

const UPRIGHT: &str = "
import io, sys
from PIL import Image, ImageOps
picture = ImageOps.exif_transpose(Image.open(io.BytesIO(sys.stdin.buffer.read()))).convert('RGB')
sys.stdout.buffer.write(b'%d %d\\n' % picture.size + picture.tobytes())
";

/// The picture rotated upright according to Pillow's reading of its orientation.
pub fn upright(jpeg: &[u8]) -> Picture {
    raw(&python(UPRIGHT, &[], jpeg))
}

/// Parses a picture that is printed as a line with its size, followed by its bytes.
fn raw(output: &[u8]) -> Picture {
    let end = output.iter().position(|byte| *byte == b'\n').expect("a line");
    let line = std::str::from_utf8(&output[..end]).expect("text");
    let (width, height) = line.split_once(' ').expect("two numbers");
    let (width, height) = (width.parse().expect("number"), height.parse().expect("number"));
    Picture { width, height, pixels: output[end + 1..].to_vec() }
}

/// The embedded profile as reassembled by Pillow; empty if there is none.
pub fn profile(jpeg: &[u8]) -> Vec<u8> {
    let script = "
import io, sys
from PIL import Image
picture = Image.open(io.BytesIO(sys.stdin.buffer.read()))
sys.stdout.buffer.write(picture.info.get('icc_profile') or b'')
";
    python(script, &[], jpeg)
}

const CMYK: &str = "
import io, sys
from PIL import Image, ImageCms
picture = Image.open(io.BytesIO(sys.stdin.buffer.read())).convert('RGB')
inks = ImageCms.profileToProfile(picture, ImageCms.createProfile('sRGB'), sys.argv[2], outputMode='CMYK')
if sys.argv[1] == 'raw':
    sys.stdout.buffer.write(inks.tobytes())
else:
    profile = open(sys.argv[2], 'rb').read() if sys.argv[1] == 'profile' else b''
    inks.save(sys.stdout.buffer, 'JPEG', quality=95, subsampling=0, icc_profile=profile)
";

/// An sRGB JPEG converted to CMYK: a JPEG with (`profile`) or without (`plain`) the target profile, or the bare
/// samples (`raw`), 255 for full ink.
pub fn cmyk(jpeg: &[u8], form: &str) -> Vec<u8> {
    let profile = super::checkout("crates/imaging/assets/cmyk.icc");
    python(CMYK, &[form, &profile.to_string_lossy()], jpeg)
}

/// The JPEG with metadata written by exiftool.
pub fn exiftool_write(jpeg: &[u8], arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("exiftool");
    command.args(["-q", "-charset", "iptc=UTF8", "-charset", "filename=UTF8"]);
    command.args(arguments).args(["-o", "-", "-"]);
    pipe(&mut command, jpeg)
}

/// The tags that exiftool reads from every file in a folder, by file name.
pub fn exiftool_folder(
    folder: &std::path::Path,
) -> Vec<(String, serde_json::Map<String, serde_json::Value>)> {
    let mut command = Command::new("exiftool");
    let arguments = ["-json", "-G1", "-a", "-n", "-warning", "-all", "-charset", "iptc=UTF8"];
    command.args(arguments).arg(folder);
    let output = pipe(&mut command, b"");
    let entries: Vec<serde_json::Map<_, _>> = serde_json::from_slice(&output).expect("JSON");
    let name = |entry: &serde_json::Map<String, serde_json::Value>| {
        entry["System:FileName"].as_str().expect("a name").to_owned()
    };
    entries.into_iter().map(|entry| (name(&entry), entry)).collect()
}
