//! Concurrent requests: shared renders, separate answers, full queues.

use std::{sync::Barrier, thread};

use super::{THUMBNAIL, header, renders};
use crate::common::{DEMO_KEY, LARGE, Server, pictures::Picture};

/// Sends all of `paths` concurrently.
fn at_once(server: &Server, paths: &[String]) -> Vec<(u16, String, Vec<u8>)> {
    let start = Barrier::new(paths.len());
    thread::scope(|scope| {
        let ask = |path: &String| {
            let (start, path) = (&start, path.clone());
            scope.spawn(move || {
                start.wait();
                let response = server.get(&path);
                let (status, retry) = (response.status(), header(&response, "retry-after"));
                (status.as_u16(), retry, response.bytes().expect("body").to_vec())
            })
        };
        let threads: Vec<_> = paths.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("asked")).collect()
    })
}

#[test]
fn many_requests_for_one_new_rendition_render_it_once() {
    let server = Server::demo();
    let path = format!("/media/{LARGE}_NormalPreview.jpg");
    let answers = at_once(&server, &vec![path; 16]);
    for (status, _, bytes) in &answers {
        assert_eq!(*status, 200);
        assert!(bytes == &answers[0].2);
    }
    assert_eq!(renders(&server), 1.0);
}

#[test]
fn parallel_requests_never_get_each_others_bytes() {
    let server = Server::demo_with(&["cache.memory_bytes=0", "cache.disk_bytes=0"]);
    let path = |n: usize| {
        format!("/media/image/demo-Falcon9-DSCOVR-crop_w{}_h40_NormalPreview.jpg", 20 + n)
    };
    let paths: Vec<_> = (0..24).map(|n| path(n % 8)).collect();
    for (n, (status, _, bytes)) in at_once(&server, &paths).into_iter().enumerate() {
        assert_eq!(status, 200);
        assert_eq!(Picture::decode(&bytes).size(), (20 + n % 8, 40));
    }
}

#[test]
fn a_full_queue_answers_503_at_once_while_cached_renditions_are_served() {
    // The job that keeps standard renditions would take the one place in the queue.
    let server = Server::demo_with(&["media.workers=1", "media.queue=1", "media.warm=false"]);
    let cached = server.bytes(THUMBNAIL);
    let crop = |n: usize| format!("/media/{LARGE}-crop_w4000_h2500_x{n}_y{n}.jpg?ak={DEMO_KEY}");
    let mut paths: Vec<_> = (0..20).map(crop).collect();
    paths.extend((0..6).map(|_| THUMBNAIL.to_owned()));
    let answers = at_once(&server, &paths);
    let refused = answers.iter().filter(|(status, ..)| *status == 503).count();
    assert!(refused > 0 && refused < 20, "{refused} of 20 were refused");
    for (path, (status, retry, bytes)) in paths.iter().zip(&answers) {
        match status {
            503 => {
                assert_ne!(path, THUMBNAIL);
                assert!(retry.parse::<u32>().is_ok_and(|seconds| seconds > 0), "{retry}");
                let text = String::from_utf8_lossy(bytes);
                assert!(text.contains("\"message\""), "{text}");
            }
            200 => assert!(path != THUMBNAIL || bytes == &cached),
            other => panic!("{path}: {other}"),
        }
    }
    // The refusal is not cached: the same URL works later.
    let lost = answers.iter().position(|(status, ..)| *status == 503).expect("one");
    assert_eq!(server.get(&paths[lost]).status(), 200);
    assert!(server.metric("wirephoto_renders_total", "refused") >= 1.0);
}
