//! Converts the boundaries of image regions when a picture is turned and cut.

use serde_json::{Map, Value, json};

use crate::LIST_ENTRIES_MAX;
use geometry::{Rect, Size};

/// Fractions of a pixel that do not count, because relative coordinates are rounded.
const TOLERANCE_PX: f64 = 1e-3;
/// Steps from 0 to 1 in which relative coordinates are written. A step is a hundredth of a pixel in a picture of
/// 10,000 pixels.
const STEPS: f64 = 1e6;

/// A point in pixels; the origin is the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Point {
    /// Turns the point with a picture of `stored` size that has an EXIF `orientation`.
    fn turned(self, orientation: u8, stored: Size) -> Point {
        let width = f64::from(stored.width);
        let height = f64::from(stored.height);
        let Point { x, y } = self;
        match orientation {
            2 => Point { x: width - x, y },
            3 => Point { x: width - x, y: height - y },
            4 => Point { x, y: height - y },
            5 => Point { x: y, y: x },
            6 => Point { x: height - y, y: x },
            7 => Point { x: height - y, y: width - x },
            8 => Point { x: y, y: width - x },
            // 1, and invalid values, which are read as 1.
            _ => Point { x, y },
        }
    }
}

/// A rectangle between edges in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Edges {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

/// The boundary of an image region, in pixels of a picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Boundary {
    Rectangle(Edges),
    Circle {
        center: Point,
        radius_px: f64,
    },
    /// One vertex is a point, two are a line, more are an area.
    Polygon(Vec<Point>),
}

impl Boundary {
    /// Reads a `RegionBoundary` of a picture of `size`, in relative or pixel units.
    ///
    /// Returns `None` if the shape or the unit is unknown, a number is missing or a length is negative.
    pub(super) fn from_json(boundary: &Map<String, Value>, size: Size) -> Option<Boundary> {
        let unit = match lower_case(boundary, "rbUnit")?.as_str() {
            "relative" => Point { x: f64::from(size.width), y: f64::from(size.height) },
            "pixel" => Point { x: 1.0, y: 1.0 },
            _ => return None,
        };
        match lower_case(boundary, "rbShape")?.as_str() {
            "rectangle" => {
                let Point { x: left, y: top } = point(boundary, unit)?;
                let right = left + length(boundary, "rbW", unit.x)?;
                let bottom = top + length(boundary, "rbH", unit.y)?;
                Some(Boundary::Rectangle(Edges { left, top, right, bottom }))
            }
            "circle" => {
                // The radius is measured along the x axis.
                let radius_px = length(boundary, "rbRx", unit.x)?;
                Some(Boundary::Circle { center: point(boundary, unit)?, radius_px })
            }
            "polygon" => {
                let vertices = boundary.get("rbVertices")?.as_array()?.iter();
                let vertices = vertices.map(|vertex| point(vertex.as_object()?, unit));
                let vertices: Vec<Point> = vertices.collect::<Option<_>>()?;
                (!vertices.is_empty()).then_some(Boundary::Polygon(vertices))
            }
            _ => None,
        }
    }

    /// Writes the boundary as a `RegionBoundary` of a picture of `size`, in relative units.
    pub(super) fn to_json(&self, size: Size) -> Value {
        let width = f64::from(size.width);
        let height = f64::from(size.height);
        match self {
            Boundary::Rectangle(edges) => json!({
                "rbShape": "rectangle",
                "rbUnit": "relative",
                "rbX": relative(edges.left, width),
                "rbY": relative(edges.top, height),
                "rbW": relative(edges.right - edges.left, width),
                "rbH": relative(edges.bottom - edges.top, height),
            }),
            Boundary::Circle { center, radius_px } => json!({
                "rbShape": "circle",
                "rbUnit": "relative",
                "rbX": relative(center.x, width),
                "rbY": relative(center.y, height),
                "rbRx": relative(*radius_px, width),
            }),
            Boundary::Polygon(vertices) => {
                let vertices = vertices.iter().map(|vertex| {
                    json!({ "rbX": relative(vertex.x, width), "rbY": relative(vertex.y, height) })
                });
                let vertices: Vec<Value> = vertices.collect();
                json!({ "rbShape": "polygon", "rbUnit": "relative", "rbVertices": vertices })
            }
        }
    }

    /// Turns the boundary with a picture of `stored` size that has an EXIF `orientation`, so that it fits the
    /// upright picture.
    pub(super) fn turned(&self, orientation: u8, stored: Size) -> Boundary {
        self.map(|point| point.turned(orientation, stored))
    }

    /// Moves each point of the boundary; `change` must not scale.
    fn map(&self, change: impl Fn(Point) -> Point) -> Boundary {
        match self {
            Boundary::Rectangle(edges) => {
                let a = change(Point { x: edges.left, y: edges.top });
                let b = change(Point { x: edges.right, y: edges.bottom });
                Boundary::Rectangle(Edges::around(&[a, b]))
            }
            Boundary::Circle { center, radius_px } => {
                Boundary::Circle { center: change(*center), radius_px: *radius_px }
            }
            Boundary::Polygon(vertices) => {
                Boundary::Polygon(vertices.iter().copied().map(change).collect())
            }
        }
    }

    /// Returns the part of the boundary inside `shown`, in pixels of that part of the picture.
    ///
    /// A circle that is partly outside becomes the rectangle around its remaining part. Returns `None` if nothing
    /// remains.
    pub(super) fn cut(&self, shown: Rect) -> Option<Boundary> {
        let edges = Edges::from_rect(shown);
        let cut = match self {
            Boundary::Rectangle(rectangle) => Boundary::Rectangle(rectangle.intersection(&edges)?),
            Boundary::Circle { center, radius_px } => {
                let around = Edges {
                    left: center.x - radius_px,
                    top: center.y - radius_px,
                    right: center.x + radius_px,
                    bottom: center.y + radius_px,
                };
                if edges.contains(&around) {
                    self.clone()
                } else if edges.distance(center) < *radius_px {
                    Boundary::Rectangle(around.intersection(&edges)?)
                } else {
                    return None;
                }
            }
            Boundary::Polygon(vertices) => cut_polygon(vertices, &edges)?,
        };
        Some(cut.map(|point| Point { x: point.x - edges.left, y: point.y - edges.top }))
    }
}

/// Returns the text of a member in lower case.
fn lower_case(object: &Map<String, Value>, name: &str) -> Option<String> {
    Some(object.get(name)?.as_str()?.to_ascii_lowercase())
}

fn number(object: &Map<String, Value>, name: &str) -> Option<f64> {
    object.get(name).and_then(Value::as_f64)
}

/// Reads a point whose coordinates are in `unit`, and converts it to pixels.
fn point(object: &Map<String, Value>, unit: Point) -> Option<Point> {
    let x = number(object, "rbX")?;
    let y = number(object, "rbY")?;
    Some(Point { x: x * unit.x, y: y * unit.y })
}

/// Reads a length in `unit`, and converts it to pixels; `None` if it is missing or negative.
fn length(object: &Map<String, Value>, name: &str, unit: f64) -> Option<f64> {
    let length = number(object, name)? * unit;
    (length >= 0.0).then_some(length)
}

/// Converts pixels to a share of an edge of the picture.
fn relative(px: f64, edge: f64) -> f64 {
    (px / edge * STEPS).round() / STEPS
}

impl Edges {
    fn from_rect(rect: Rect) -> Edges {
        let left = f64::from(rect.x);
        let top = f64::from(rect.y);
        let right = left + f64::from(rect.width);
        let bottom = top + f64::from(rect.height);
        Edges { left, top, right, bottom }
    }

    /// Returns the smallest rectangle that contains the points. There must be at least one point.
    fn around(points: &[Point]) -> Edges {
        let x = points.iter().map(|point| point.x);
        let y = points.iter().map(|point| point.y);
        Edges {
            left: x.clone().reduce(f64::min).unwrap_or_default(),
            top: y.clone().reduce(f64::min).unwrap_or_default(),
            right: x.reduce(f64::max).unwrap_or_default(),
            bottom: y.reduce(f64::max).unwrap_or_default(),
        }
    }

    fn contains(&self, other: &Edges) -> bool {
        self.left - TOLERANCE_PX <= other.left
            && self.top - TOLERANCE_PX <= other.top
            && self.right + TOLERANCE_PX >= other.right
            && self.bottom + TOLERANCE_PX >= other.bottom
    }

    /// Returns the common part; `None` if the rectangles only touch.
    fn intersection(&self, other: &Edges) -> Option<Edges> {
        let common = Edges {
            left: self.left.max(other.left),
            top: self.top.max(other.top),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        let has_area =
            common.right - common.left > TOLERANCE_PX && common.bottom - common.top > TOLERANCE_PX;
        has_area.then_some(common)
    }

    /// Returns the distance of a point from the rectangle; zero inside it.
    fn distance(&self, point: &Point) -> f64 {
        let x = point.x - point.x.clamp(self.left, self.right);
        let y = point.y - point.y.clamp(self.top, self.bottom);
        x.hypot(y)
    }
}

/// A straight edge of the shown part, with the side on which the inside lies.
#[derive(Clone, Copy)]
struct HalfPlane {
    /// True if the edge is vertical.
    vertical: bool,
    at: f64,
    /// True if the larger coordinates are inside.
    beyond: bool,
}

impl HalfPlane {
    fn all(edges: &Edges) -> [HalfPlane; 4] {
        [
            HalfPlane { vertical: true, at: edges.left, beyond: true },
            HalfPlane { vertical: true, at: edges.right, beyond: false },
            HalfPlane { vertical: false, at: edges.top, beyond: true },
            HalfPlane { vertical: false, at: edges.bottom, beyond: false },
        ]
    }

    /// Returns the distance of a point from the edge in pixels, positive inside and negative outside.
    fn depth(self, point: &Point) -> f64 {
        let coordinate = if self.vertical { point.x } else { point.y };
        if self.beyond { coordinate - self.at } else { self.at - coordinate }
    }

    /// Returns the point where the line from `a` to `b` crosses the edge. The two must be on different sides.
    fn crossing(self, a: &Point, b: &Point) -> Point {
        let share = self.depth(a) / (self.depth(a) - self.depth(b));
        Point { x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share }
    }

    /// Cuts a line or an area, edge by edge (the algorithm of Sutherland and Hodgman).
    fn cut(self, vertices: &[Point], closed: bool) -> Vec<Point> {
        let mut inside = Vec::with_capacity(vertices.len() + 2);
        let last = if closed { vertices.last() } else { None };
        let mut before = last;
        for vertex in vertices {
            if let Some(before) = before
                && (self.depth(before) < 0.0) != (self.depth(vertex) < 0.0)
            {
                inside.push(self.crossing(before, vertex));
            }
            if self.depth(vertex) >= 0.0 {
                inside.push(*vertex);
            }
            before = Some(vertex);
        }
        inside
    }
}

/// Cuts a point, a line or an area; `None` if nothing remains.
///
/// Parts of an area that the cut separates stay connected along the edge. An area with more vertices than a list
/// may have becomes the rectangle around it.
fn cut_polygon(vertices: &[Point], edges: &Edges) -> Option<Boundary> {
    let closed = vertices.len() > 2;
    let mut inside = vertices.to_vec();
    for edge in HalfPlane::all(edges) {
        inside = edge.cut(&inside, closed);
    }
    let around = Edges::around(&inside);
    let is_line =
        around.right - around.left > TOLERANCE_PX || around.bottom - around.top > TOLERANCE_PX;
    match vertices.len() {
        // The remains of a line or an area that only touches the edge show nothing.
        0 => return None,
        1 if inside.is_empty() => return None,
        2 if !is_line => return None,
        1 | 2 => {}
        _ if doubled_area(&inside) <= TOLERANCE_PX => return None,
        _ if inside.len() > LIST_ENTRIES_MAX => return Some(Boundary::Rectangle(around)),
        _ => {}
    }
    Some(Boundary::Polygon(inside))
}

/// Returns twice the area that the vertices enclose, in square pixels.
fn doubled_area(vertices: &[Point]) -> f64 {
    let next = vertices.iter().cycle().skip(1);
    vertices.iter().zip(next).map(|(a, b)| a.x * b.y - b.x * a.y).sum::<f64>().abs()
}
