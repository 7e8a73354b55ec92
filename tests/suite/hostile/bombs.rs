//! Small files that consume much memory or time, or nest deeply.

use turbojpeg::{Subsamp, Transform, TransformOp};

use crate::common::pictures::{Picture, with_segment};

/// The expected result of ingesting a bomb.
pub enum Expected {
    /// It is refused, with this text in the reason.
    Refused(&'static str),
    /// It may be ingested; every later request for it is answered within the limits.
    Bounded,
}

/// A file that consumes excessive resources.
pub struct Bomb {
    /// Its name without extension, which is also the id of its item.
    pub name: &'static str,
    pub extension: &'static str,
    pub bytes: Vec<u8>,
    pub said: Expected,
}

/// All bombs, photographs first.
pub fn all() -> Vec<Bomb> {
    let mut all = photographs();
    all.extend(metadata());
    all.extend(documents());
    all.extend(films());
    all
}

fn bomb(name: &'static str, extension: &'static str, bytes: Vec<u8>, said: Expected) -> Bomb {
    Bomb { name, extension, bytes, said }
}

fn photographs() -> Vec<Bomb> {
    let plain = Picture::flat(64, 64, [90, 120, 150]).jpeg();
    let progressive = progressive(&plain);
    let segments = |marker: u8, payload: &[u8], count: usize| {
        let one = with_segment(&[0xFF, 0xD8], marker, payload)[2..].to_vec();
        [&plain[..2], &one.repeat(count), &plain[2..]].concat()
    };
    let jpg = |name, bytes, said| bomb(name, "jpg", bytes, said);
    let png =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x08\x06\0\0\0".to_vec();
    let mut components = vec![8, 0, 64, 0, 64, 255];
    components.extend((0..=254).flat_map(|id| [id, 0x11, 0]));
    let many = [&[0xFF, 0xD8][..], &segment(0xC0, &components), &plain[2..]].concat();
    let no_height = claiming(&plain, 64, 0);
    let at = no_height.len() - 2;
    let dnl = [&no_height[..at], &segment(0xDC, &[0, 64]), &[0xFF, 0xD9]].concat();
    let end = plain.len() - 2;
    let other_height = [&plain[..end], &segment(0xDC, &[0xFF, 0xFF]), &[0xFF, 0xD9]].concat();
    vec![
        jpg(
            "declares-four-gigapixels",
            claiming(&plain, 65535, 65535),
            Expected::Refused("megapixels_max"),
        ),
        jpg(
            "declares-half-a-gigapixel",
            claiming(&plain, 65500, 7600),
            Expected::Refused("can only be decoded as a whole"),
        ),
        jpg(
            "coefficients-of-half-a-gigapixel",
            claiming(&progressive, 65500, 7600),
            Expected::Refused("ingest.memory_bytes"),
        ),
        jpg("five-thousand-scans", with_scans(&progressive, 5000), Expected::Refused("scans")),
        jpg("ninety-scans", with_scans(&progressive, 80), Expected::Bounded),
        jpg(
            "scans-times-pixels",
            claiming(&with_scans(&progressive, 80), 65500, 7600),
            Expected::Refused("pixels in all scans together"),
        ),
        jpg(
            "thirty-thousand-segments",
            segments(0xFE, b"x", 30_000),
            Expected::Refused("segments"),
        ),
        jpg("fifteen-hundred-tables", segments(0xDB, &[1; 65], 1500), Expected::Bounded),
        jpg("fifteen-hundred-huffman-tables", segments(0xC4, &[0; 17], 1500), Expected::Bounded),
        jpg("a-table-of-too-many-codes", segments(0xC4, &[255; 17 + 255], 1), Expected::Bounded),
        jpg("components-255", many, Expected::Refused("marker C0")),
        jpg("height-comes-later", dnl, Expected::Refused("64x0")),
        jpg("height-comes-later-and-differs", other_height, Expected::Bounded),
        jpg("restart-after-each-block", restarts(2048), Expected::Bounded),
        jpg("png-of-all-pixels", png, Expected::Refused("FF D8")),
        jpg("zip-as-photograph", b"PK\x03\x04".repeat(99), Expected::Refused("FF D8")),
    ]
}

fn metadata() -> Vec<Bomb> {
    let plain = Picture::flat(64, 64, [90, 120, 150]).jpeg();
    let jpg = |name, bytes, said| bomb(name, "jpg", bytes, said);
    let icc = |sets: usize| {
        let chunk = |number: u8| {
            let payload = [b"ICC_PROFILE\0", &[number, 255][..], &[0x5A; 65_519]].concat();
            segment(0xE2, &payload)
        };
        let chunks: Vec<u8> = (1..=255).flat_map(chunk).collect();
        [&plain[..2], &chunks.repeat(sets), &plain[2..]].concat()
    };
    let xmp = |packet: &str| {
        let payload = [b"http://ns.adobe.com/xap/1.0/\0", packet.as_bytes()].concat();
        with_segment(&plain, 0xE1, &payload)
    };
    let entities: String = (1..=9)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let laughs = format!(
        "<!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}]><x:xmpmeta xmlns:x='adobe:ns:meta/'>\
         <rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description \
         xmlns:photoshop='http://ns.adobe.com/photoshop/1.0/' photoshop:Headline='&l9;'>\
         <photoshop:City>&l9;</photoshop:City></rdf:Description></rdf:RDF></x:xmpmeta>"
    );
    let deep = format!("<x:xmpmeta xmlns:x='adobe:ns:meta/'>{}", "<a:b>".repeat(12_000));
    let exif = |ifd: &[u8]| {
        let payload = [b"Exif\0\0II*\0\x08\0\0\0", ifd].concat();
        with_segment(&plain, 0xE1, &payload)
    };
    // A single entry, whose next directory is itself.
    let circle = [&[1, 0][..], &[0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0], &[8, 0, 0, 0]].concat();
    let far = [&[1, 0][..], &[0x69, 0x87, 4, 0, 255, 255, 255, 255, 255, 255, 255, 127], &[0; 4]];
    let entry = [0x3B, 1, 2, 0, 255, 255, 255, 127, 8, 0, 0, 0];
    let many = [&[0xFF, 0xFF][..], &entry.repeat(5000)].concat();
    let iim = |datasets: &[u8]| {
        let length = u32::try_from(datasets.len()).expect("small").to_be_bytes();
        let payload = [b"Photoshop 3.0\x008BIM\x04\x04\0\0", &length[..], datasets].concat();
        with_segment(&plain, 0xED, &payload)
    };
    let long = [&[0x1C, 2, 120, 0x80, 4, 0xFF, 0xFF, 0xFF, 0xFF][..], b"x"].concat();
    let flood = [0x1C, 2, 25, 0, 1, b'k'].repeat(10_000);
    vec![
        jpg("profile-of-16-megabytes", icc(1), Expected::Bounded),
        jpg("profiles-of-50-megabytes", icc(3), Expected::Refused("of metadata")),
        jpg("xmp-of-a-billion-laughs", xmp(&laughs), Expected::Bounded),
        jpg("xmp-twelve-thousand-deep", xmp(&deep), Expected::Bounded),
        jpg("exif-in-a-circle", exif(&circle), Expected::Bounded),
        jpg("exif-far-away", exif(&far.concat()), Expected::Bounded),
        jpg("exif-of-ten-terabytes", exif(&many), Expected::Bounded),
        jpg("iim-of-four-gigabytes", iim(&long), Expected::Bounded),
        jpg("iim-of-ten-thousand-keywords", iim(&flood), Expected::Bounded),
    ]
}

fn documents() -> Vec<Bomb> {
    let pdf = |name, bytes| bomb(name, "pdf", bytes, Expected::Bounded);
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R \
                /Resources << /XObject << /I 5 0 R >> >> >>";
    let pages = "<< /Type /Pages /Kids [3 0 R] /Count 1 >>";
    let drawn = |content: &[u8], head: &str, other: &[u8]| {
        let head = format!("<< {head} /Length {} >>\nstream\n", content.len());
        let content = [head.as_bytes(), content, b"\nendstream"].concat();
        file(&[
            b"<< /Type /Catalog /Pages 2 0 R >>",
            pages.as_bytes(),
            page.as_bytes(),
            &content,
            other,
        ])
    };
    let image =
        b"<< /Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceRGB \
                  /BitsPerComponent 8 /Length 3 >>\nstream\nabc\nendstream";
    let form =
        b"<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /I 5 0 R >> \
                 >> /Length 5 >>\nstream\n/I Do\nendstream";
    // Each of thirty-six forms draws the next one twice: 69 billion rectangles.
    let forms: Vec<String> = (5..=40)
        .map(|number| {
            let (name, text) =
                (number + 1, if number == 40 { "0 0 9 9 re f" } else { "/I Do /I Do " });
            format!(
                "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject \
                 << /I {name} 0 R >> >> /Length 12 >>\nstream\n{text}\nendstream"
            )
        })
        .collect();
    let draw = "<< /Length 5 >>\nstream\n/I Do\nendstream";
    let head = ["<< /Type /Catalog /Pages 2 0 R >>", pages, page, draw];
    let objects: Vec<&[u8]> =
        head.into_iter().chain(forms.iter().map(String::as_str)).map(str::as_bytes).collect();
    let forms = file(&objects);
    let circle = file(&[
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count 99999999 >>",
    ]);
    let deep = file(&[b"<< /Type /Catalog /Pages 2 0 R >>", "[".repeat(200_000).as_bytes()]);
    let streams = file(&[
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /ObjStm /N 99999999 /First 4 /Extends 2 0 R /Length 4 >>\nstream\n2 0 \nendstream",
    ]);
    let bomb_of = zeros(600_000_000);
    let eps = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n{ 1000000 array pop } loop\n";
    vec![
        pdf("pdf-that-unpacks-to-600-megabytes", drawn(&bomb_of, "/Filter /FlateDecode", b"null")),
        pdf("pdf-with-pages-in-a-circle", circle),
        pdf("pdf-with-streams-in-a-circle", streams),
        pdf("pdf-of-two-hundred-thousand-arrays", deep),
        pdf("pdf-of-a-million-saved-states", drawn(&b"q ".repeat(1_000_000), "", b"null")),
        pdf("pdf-with-a-form-in-itself", drawn(b"/I Do", "", form)),
        pdf("pdf-of-forms-in-forms", forms),
        pdf("pdf-with-an-image-of-four-gigapixels", drawn(b"100 0 0 100 0 0 cm /I Do", "", image)),
        pdf("pdf-that-draws-without-end", drawn(&b"0 0 9 9 re f ".repeat(300_000), "", b"null")),
        bomb("eps-that-never-ends", "eps", eps.as_bytes().to_vec(), Expected::Bounded),
    ]
}

fn films() -> Vec<Bomb> {
    let mp4 = |name, bytes, text| bomb(name, "mp4", bytes, Expected::Refused(text));
    let boxed = |kind: &[u8; 4], content: &[u8]| {
        let length = u32::try_from(content.len() + 8).expect("small").to_be_bytes();
        [&length[..], kind, content].concat()
    };
    let start = boxed(b"ftyp", b"isom\0\0\x02\0isomiso2avc1mp41");
    let with = |rest: &[u8]| [start.as_slice(), rest].concat();
    let mut nested = Vec::new();
    for _ in 0..3000 {
        nested = boxed(b"moov", &nested);
    }
    let mut tracks = Vec::new();
    for _ in 0..3000 {
        tracks = boxed(b"trak", &tracks);
    }
    let huge = [&[0, 0, 0, 1][..], b"moov", &(4_u64 << 30).to_be_bytes(), &[0; 64]].concat();
    vec![
        mp4("film-of-nested-boxes", with(&nested), "MP4"),
        mp4("film-of-nested-tracks", with(&boxed(b"moov", &tracks)), "MP4"),
        mp4("film-whose-index-has-four-gigabytes", with(&huge), "moov"),
        mp4("film-of-a-box-without-end", with(b"\0\0\0\0moov"), "MP4"),
        mp4("film-of-a-box-of-one-byte", with(b"\0\0\0\x01moov\0\0\0\0\0\0\0\x01"), "MP4"),
        mp4("film-of-300000-boxes", with(&boxed(b"free", &[]).repeat(300_000)), "boxes"),
    ]
}

fn segment(marker: u8, payload: &[u8]) -> Vec<u8> {
    with_segment(&[0xFF, 0xD8], marker, payload)[2..].to_vec()
}

/// The same picture as a progressive JPEG.
pub fn progressive(jpeg: &[u8]) -> Vec<u8> {
    let mut transform = Transform::op(TransformOp::None);
    transform.progressive = true;
    turbojpeg::transform(&transform, jpeg).expect("a JPEG").to_vec()
}

/// The same picture as a progressive JPEG whose last scan is truncated: it can only be decoded as a whole.
pub fn cut_short(jpeg: &[u8]) -> Vec<u8> {
    let whole = progressive(jpeg);
    let scan = whole.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).expect("a scan");
    let data = scan + 2 + usize::from(u16::from_be_bytes([whole[scan + 2], whole[scan + 3]]));
    [&whole[..=data], &[0xFF, 0xD9]].concat()
}

/// The picture with another size in its frame header.
fn claiming(jpeg: &[u8], width: u16, height: u16) -> Vec<u8> {
    let is_frame = |pair: &[u8]| pair == [0xFF, 0xC0] || pair == [0xFF, 0xC2];
    let frame = jpeg.windows(2).position(is_frame).expect("a frame");
    let mut jpeg = jpeg.to_vec();
    jpeg[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    jpeg
}

/// A progressive picture whose last scan is repeated `count` times.
fn with_scans(jpeg: &[u8], count: usize) -> Vec<u8> {
    let start = jpeg.windows(2).rposition(|pair| pair == [0xFF, 0xDA]).expect("a scan");
    let end = jpeg.len() - 2;
    [&jpeg[..end], &jpeg[start..end].repeat(count), &jpeg[end..]].concat()
}

/// A grey picture with a restart marker after each of its blocks; `side` is a multiple of 8.
fn restarts(side: u16) -> Vec<u8> {
    let grey = Picture::flat(8, 8, [128; 3]).jpeg_with(Subsamp::Gray, 90);
    let scan = grey.windows(2).position(|pair| pair == [0xFF, 0xDA]).expect("a scan");
    let data = scan + 2 + usize::from(u16::from_be_bytes([grey[scan + 2], grey[scan + 3]]));
    let blocks = u32::from(side / 8) * u32::from(side / 8);
    let mut out = grey[..scan].to_vec();
    out.extend(segment(0xDD, &[0, 1]));
    out.extend_from_slice(&grey[scan..data]);
    for block in 0..blocks {
        // A zero DC difference, end of block, and one bits to the end of the byte.
        out.push(0b0010_1011);
        if block + 1 < blocks {
            out.extend([0xFF, 0xD0 + u8::try_from(block % 8).expect("small")]);
        }
    }
    out.extend([0xFF, 0xD9]);
    claiming(&out, side, side)
}

/// A PDF of objects 1, 2, 3 …
fn file(objects: &[&[u8]]) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n", number + 1).into_bytes());
        out.extend_from_slice(object);
        out.extend(b"\nendobj\n");
    }
    let xref = out.len();
    let count = places.len() + 1;
    out.extend(format!("xref\n0 {count}\n0000000000 65535 f \n").into_bytes());
    for place in places {
        out.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let trailer = format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF\n");
    out.extend(trailer.into_bytes());
    out
}

/// A zlib stream of about `count` zeros: one of them, then runs of 258 (RFC 1951, fixed codes).
fn zeros(count: u32) -> Vec<u8> {
    let (mut out, mut held, mut bits) = (vec![0x78, 0x9C], 0_u32, 0_u32);
    let mut put = |out: &mut Vec<u8>, code: u32, length: u32| {
        // Codes are written most significant bit first; bytes are filled from the least significant bit.
        held |= (code.reverse_bits() >> (32 - length)) << bits;
        bits += length;
        while bits >= 8 {
            out.push(held.to_le_bytes()[0]);
            held >>= 8;
            bits -= 8;
        }
    };
    // The last block, with fixed codes: the bit 1, then 01 from its least significant bit.
    put(&mut out, 0b110, 3);
    put(&mut out, 0b0011_0000, 8);
    let runs = count / 258;
    for _ in 0..runs {
        put(&mut out, 0b1100_0101, 8);
        put(&mut out, 0, 5);
    }
    put(&mut out, 0, 7);
    put(&mut out, 0, 8);
    let length = runs * 258 + 1;
    out.extend(((length % 65_521) << 16 | 1).to_be_bytes());
    out
}
