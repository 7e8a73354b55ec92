//! Runs functions of type 4: the calculator language (ISO 32000-1 §7.10.5).
//!
//! The language has no loops, so a call runs at most as many steps as its program has.

use crate::number::{index, whole};

/// One step of a program.
#[derive(Debug, Clone, Copy)]
enum CalculatorStep {
    Push(f32),
    Operator(CalculatorOperator),
    /// Pops a condition and jumps to the step if it is false.
    SkipIfFalse(usize),
    /// Jumps to the step unconditionally.
    Skip(usize),
}

/// The effect of an operator on the stack.
type CalculatorOperator = fn(&mut NumberStack);

#[derive(Debug, Clone)]
pub(super) struct Calculator {
    steps: Vec<CalculatorStep>,
}

/// The maximum nesting of braces and stack height, from the format's limit of 100 entries.
const STACK_MAX: usize = 100;
/// The maximum length of a program; real programs have some hundred steps.
const STEPS_MAX: usize = 50_000;

impl Calculator {
    /// Parses a program in braces; `None` if it is malformed or too long.
    pub(super) fn parse(text: &[u8]) -> Option<Calculator> {
        let mut words = ProgramWords { text, position: 0 };
        let mut steps = Vec::new();
        // The first step of each open block, and the closed blocks that `if` or `ifelse` has not used yet.
        let mut open: Vec<usize> = Vec::new();
        let mut closed: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
        if words.next()? != b"{" {
            return None;
        }
        open.push(0);
        closed.push(Vec::new());
        while let Some(word) = words.next() {
            // A stream of nothing but open braces would otherwise grow both stacks with its length.
            if steps.len() > STEPS_MAX || open.len() > STACK_MAX {
                return None;
            }
            match word {
                b"{" => {
                    // Patched by the `if` or `ifelse` that follows the block.
                    steps.push(CalculatorStep::Skip(steps.len() + 1));
                    open.push(steps.len());
                    closed.push(Vec::new());
                }
                b"}" => {
                    let start = open.pop()?;
                    closed.pop()?;
                    if open.is_empty() {
                        return Some(Calculator { steps });
                    }
                    // A placeholder for the jump over an else block.
                    steps.push(CalculatorStep::Skip(steps.len() + 1));
                    closed.last_mut()?.push((start, steps.len()));
                }
                b"if" => {
                    let (start, end) = closed.last_mut()?.pop()?;
                    steps[start - 1] = CalculatorStep::SkipIfFalse(end);
                }
                b"ifelse" => {
                    let (else_start, end) = closed.last_mut()?.pop()?;
                    let (start, then_end) = closed.last_mut()?.pop()?;
                    steps[start - 1] = CalculatorStep::SkipIfFalse(else_start);
                    steps[then_end - 1] = CalculatorStep::Skip(end);
                }
                b"true" => steps.push(CalculatorStep::Push(1.0)),
                b"false" => steps.push(CalculatorStep::Push(0.0)),
                word => steps.push(match operator(word) {
                    Some(operator) => CalculatorStep::Operator(operator),
                    None => CalculatorStep::Push(std::str::from_utf8(word).ok()?.parse().ok()?),
                }),
            }
        }
        None
    }

    /// Returns the maximum number of steps of one call.
    pub(super) fn cost(&self) -> usize {
        self.steps.len() + 1
    }

    /// Runs the program on `inputs`. The last `outputs` values of the stack are the result; missing values
    /// are 0.
    pub(super) fn run(&self, inputs: &[f32], outputs: usize) -> Vec<f32> {
        let mut stack = NumberStack { values: inputs.to_vec() };
        let mut position = 0;
        while let Some(step) = self.steps.get(position) {
            position += 1;
            match *step {
                CalculatorStep::Push(value) => stack.push(value),
                CalculatorStep::Operator(operator) => operator(&mut stack),
                CalculatorStep::SkipIfFalse(next) => {
                    if stack.pop() == 0.0 {
                        position = next.max(position);
                    }
                }
                // Jumps only lead forward, so a call ends even if a block was never patched.
                CalculatorStep::Skip(next) => position = next.max(position),
            }
        }
        let surplus = stack.values.len().saturating_sub(outputs);
        let mut result = stack.values.split_off(surplus);
        result.resize(outputs, 0.0);
        result
    }
}

/// A stack of numbers only: true is 1 and false is 0, which suits the bitwise operators too.
struct NumberStack {
    values: Vec<f32>,
}

impl NumberStack {
    fn push(&mut self, value: f32) {
        // `copy` can double the stack with every step.
        if self.values.len() < STACK_MAX {
            // NaN and infinity would spread through every later operator and into the page.
            self.values.push(if value.is_finite() { value } else { 0.0 });
        }
    }

    fn pop(&mut self) -> f32 {
        self.values.pop().unwrap_or(0.0)
    }

    fn apply_unary(&mut self, compute: impl Fn(f32) -> f32) {
        let value = self.pop();
        self.push(compute(value));
    }

    fn apply_binary(&mut self, compute: impl Fn(f32, f32) -> f32) {
        // The right operand is on top of the stack.
        let second = self.pop();
        let first = self.pop();
        self.push(compute(first, second));
    }

    fn compare(&mut self, holds: impl Fn(&f32, &f32) -> bool) {
        self.apply_binary(|first, second| f32::from(u8::from(holds(&first, &second))));
    }

    fn apply_bitwise(&mut self, compute: impl Fn(i64, i64) -> i64) {
        self.apply_binary(|first, second| integer(compute(whole(first), whole(second))));
    }

    fn copy_top(&mut self) {
        let count = index(self.pop(), STACK_MAX);
        let from = self.values.len().saturating_sub(count);
        // The range is fixed before the loop, which appends to the same stack.
        for position in from..self.values.len() {
            let value = self.values[position];
            self.push(value);
        }
    }

    fn copy_at_depth(&mut self) {
        let depth = index(self.pop(), STACK_MAX);
        self.push_copy(depth);
    }

    /// Pushes a copy of the value `depth` below the top.
    fn push_copy(&mut self, depth: usize) {
        let position = self.values.len().checked_sub(depth + 1);
        let value = position.map_or(0.0, |position| self.values[position]);
        self.push(value);
    }

    fn roll_top(&mut self) {
        let by = whole(self.pop());
        let count = index(self.pop(), STACK_MAX);
        self.roll(count, by);
    }

    fn roll(&mut self, count: usize, by: i64) {
        let count = count.min(self.values.len());
        if count == 0 {
            return;
        }
        let length = i64::try_from(count).unwrap_or(i64::MAX);
        // A negative distance rolls in the opposite direction, and a distance beyond the length wraps.
        let by = usize::try_from(by.rem_euclid(length)).unwrap_or(0);
        let from = self.values.len() - count;
        self.values[from..].rotate_right(by);
    }
}

#[expect(clippy::cast_precision_loss, reason = "operands are single-precision reals")]
fn integer(value: i64) -> f32 {
    value as f32
}

fn shift(value: i64, by: i64) -> i64 {
    let distance = u32::try_from(by.unsigned_abs()).unwrap_or(u32::MAX);
    if by >= 0 {
        // PostScript fills with zeros; Rust refuses to shift by the width of the type or more.
        value.checked_shl(distance).unwrap_or(0)
    } else {
        value.checked_shr(distance).unwrap_or(0)
    }
}

/// Finds an operator by its name; `None` for numbers and unknown words.
fn operator(word: &[u8]) -> Option<CalculatorOperator> {
    let operator: CalculatorOperator = match word {
        b"abs" => |stack| stack.apply_unary(f32::abs),
        b"add" => |stack| stack.apply_binary(|a, b| a + b),
        b"and" => |stack| stack.apply_bitwise(|a, b| a & b),
        b"atan" => |stack| stack.apply_binary(|a, b| a.atan2(b).to_degrees().rem_euclid(360.0)),
        b"bitshift" => |stack| stack.apply_bitwise(shift),
        b"ceiling" => |stack| stack.apply_unary(f32::ceil),
        b"copy" => NumberStack::copy_top,
        b"cos" => |stack| stack.apply_unary(|a| a.to_radians().cos()),
        b"cvi" | b"truncate" => |stack| stack.apply_unary(f32::trunc),
        b"cvr" => |_| {},
        b"div" => |stack| stack.apply_binary(|a, b| a / b),
        b"dup" => |stack| stack.push_copy(0),
        b"eq" => |stack| stack.compare(f32::eq),
        b"exch" => |stack| stack.roll(2, 1),
        b"exp" => |stack| stack.apply_binary(f32::powf),
        b"floor" => |stack| stack.apply_unary(f32::floor),
        b"ge" => |stack| stack.compare(f32::ge),
        b"gt" => |stack| stack.compare(f32::gt),
        // PostScript fails on a division by zero, but a page cannot stop in the middle.
        b"idiv" => |stack| stack.apply_bitwise(|a, b| a.checked_div(b).unwrap_or(0)),
        b"index" => NumberStack::copy_at_depth,
        b"le" => |stack| stack.compare(f32::le),
        b"ln" => |stack| stack.apply_unary(f32::ln),
        b"log" => |stack| stack.apply_unary(f32::log10),
        b"lt" => |stack| stack.compare(f32::lt),
        b"mod" => |stack| stack.apply_bitwise(|a, b| a.checked_rem(b).unwrap_or(0)),
        b"mul" => |stack| stack.apply_binary(|a, b| a * b),
        b"ne" => |stack| stack.compare(f32::ne),
        b"neg" => |stack| stack.apply_unary(|a| -a),
        // Negates a truth value; other integers are rare in colour functions.
        b"not" => |stack| stack.apply_unary(|a| f32::from(u8::from(a == 0.0))),
        b"or" => |stack| stack.apply_bitwise(|a, b| a | b),
        b"pop" => |stack| {
            stack.pop();
        },
        b"roll" => NumberStack::roll_top,
        // PostScript rounds halves up, `f32::round` away from zero.
        b"round" => |stack| stack.apply_unary(|a| (a + 0.5).floor()),
        b"sin" => |stack| stack.apply_unary(|a| a.to_radians().sin()),
        b"sqrt" => |stack| stack.apply_unary(f32::sqrt),
        b"sub" => |stack| stack.apply_binary(|a, b| a - b),
        b"xor" => |stack| stack.apply_bitwise(|a, b| a ^ b),
        _ => return None,
    };
    Some(operator)
}

/// An iterator over the words of a program: braces, numbers, operators; comments are skipped.
struct ProgramWords<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> ProgramWords<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let byte = *self.text.get(self.position)?;
            if byte == b'%' {
                while !matches!(self.text.get(self.position), None | Some(b'\n' | b'\r')) {
                    self.position += 1;
                }
            // NUL is white space in PDF (ISO 32000-1 §7.2.2).
            } else if byte.is_ascii_whitespace() || byte == 0 {
                self.position += 1;
            } else {
                break;
            }
        }
        let start = self.position;
        self.position += 1;
        if !matches!(self.text[start], b'{' | b'}') {
            while self.text.get(self.position).is_some_and(|byte| !is_delimiter(*byte)) {
                self.position += 1;
            }
        }
        Some(&self.text[start..self.position])
    }
}

fn is_delimiter(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"{}%\0".contains(&byte)
}
