//! The expressions of `\set`: pgbench's integers, doubles, operators and random functions.

use std::fmt;
use std::io::Write as _;

use super::draw::{Draw, GAUSSIAN_LEAST, ZIPFIAN};

/// How deep parentheses and signs may nest; evaluation recurses as deep.
const MAX_DEPTH: usize = 64;
/// The longest expression in bytes: evaluation recurses once per operator, too.
const MAX_BYTES: usize = 4096;

/// What a variable holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    /// A whole number.
    Int(i64),
    /// Any other.
    Double(f64),
}

impl Value {
    fn as_double(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Double(value) => value,
        }
    }

    /// As pgbench converts: doubles are rounded.
    fn as_int(self) -> Result<i64, &'static str> {
        match self {
            Self::Int(value) => Ok(value),
            Self::Double(value) if value.abs() < 9.2e18 => Ok(value.round() as i64),
            Self::Double(_) => Err(RANGE),
        }
    }

    /// Appends it as SQL reads it.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Int(value) => write!(out, "{value}"),
            Self::Double(value) => write!(out, "{value:?}"),
        };
    }

    /// Reads a number as `--define` gives it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let double = || text.parse().ok().filter(|v: &f64| v.is_finite());
        match text.parse() {
            Ok(value) => Some(Self::Int(value)),
            Err(_) => double().map(Self::Double),
        }
    }
}

const RANGE: &str = "bigint out of range";

/// An expression whose variables are numbers of slots.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    Variable(usize),
    Negate(Box<Self>),
    Binary(Operator, Box<Self>, Box<Self>),
    Call(Function, Vec<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Random,
    Zipfian,
    Exponential,
    Gaussian,
    Abs,
    Int,
    Double,
    Mod,
    Least,
    Greatest,
}

/// Name, meaning, and the least and the greatest number of arguments.
const FUNCTIONS: [(&str, Function, usize, usize); 10] = [
    ("random", Function::Random, 2, 2),
    ("random_zipfian", Function::Zipfian, 3, 3),
    ("random_exponential", Function::Exponential, 3, 3),
    ("random_gaussian", Function::Gaussian, 3, 3),
    ("abs", Function::Abs, 1, 1),
    ("int", Function::Int, 1, 1),
    ("double", Function::Double, 1, 1),
    ("mod", Function::Mod, 2, 2),
    ("least", Function::Least, 1, 16),
    ("greatest", Function::Greatest, 1, 16),
];

impl Expression {
    /// The value, with `variables` by slot.
    ///
    /// # Errors
    /// In pgbench's words, what cannot be computed.
    pub(crate) fn evaluate(
        &self,
        variables: &[Value],
        draw: &mut Draw,
    ) -> Result<Value, &'static str> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(slot) => variables.get(*slot).copied().ok_or("no such variable"),
            Self::Negate(inner) => match inner.evaluate(variables, draw)? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or(RANGE),
                Value::Double(value) => Ok(Value::Double(-value)),
            },
            Self::Binary(operator, left, right) => {
                let left = left.evaluate(variables, draw)?;
                operator.apply(left, right.evaluate(variables, draw)?)
            }
            Self::Call(function, arguments) => {
                let mut values = [Value::Int(0); 3];
                if let Function::Least | Function::Greatest = function {
                    return extreme(*function, arguments, variables, draw);
                }
                for (value, argument) in values.iter_mut().zip(arguments) {
                    *value = argument.evaluate(variables, draw)?;
                }
                function.apply(values, draw)
            }
        }
    }
}

impl Operator {
    fn apply(self, left: Value, right: Value) -> Result<Value, &'static str> {
        let (Value::Int(a), Value::Int(b)) = (left, right) else {
            return self.apply_doubles(left.as_double(), right.as_double());
        };
        let result = match self {
            Self::Add => a.checked_add(b),
            Self::Subtract => a.checked_sub(b),
            Self::Multiply => a.checked_mul(b),
            Self::Divide | Self::Remainder if b == 0 => return Err("division by zero"),
            Self::Divide => a.checked_div(b),
            // The only overflow is with -1, where nothing remains.
            Self::Remainder => Some(a.wrapping_rem(b)),
        };
        result.map(Value::Int).ok_or(RANGE)
    }

    fn apply_doubles(self, a: f64, b: f64) -> Result<Value, &'static str> {
        Ok(Value::Double(match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide if b == 0.0 => return Err("division by zero"),
            Self::Divide => a / b,
            Self::Remainder => return Err("% needs integers"),
        }))
    }
}

impl Function {
    fn apply(self, [a, b, c]: [Value; 3], draw: &mut Draw) -> Result<Value, &'static str> {
        let parameter = c.as_double();
        let value = match self {
            Self::Abs => match a {
                Value::Int(value) => return value.checked_abs().map(Value::Int).ok_or(RANGE),
                Value::Double(value) => return Ok(Value::Double(value.abs())),
            },
            Self::Double => return Ok(Value::Double(a.as_double())),
            Self::Mod => return Operator::Remainder.apply(a, b),
            Self::Int => a.as_int()?,
            _ => {
                let (low, high) = (a.as_int()?, b.as_int()?);
                if low > high {
                    return Err("the lower bound of random is above the upper");
                }
                match self {
                    Self::Zipfian if !ZIPFIAN.contains(&parameter) => {
                        return Err("the parameter of random_zipfian must be from 1.001 to 1000");
                    }
                    Self::Gaussian if parameter.is_nan() || parameter < GAUSSIAN_LEAST => {
                        return Err("the parameter of random_gaussian must be at least 2");
                    }
                    Self::Exponential if parameter.is_nan() || parameter <= 0.0 => {
                        return Err("the parameter of random_exponential must be above 0");
                    }
                    Self::Zipfian => draw.zipfian(low, high, parameter),
                    Self::Gaussian => draw.gaussian(low, high, parameter),
                    Self::Exponential => draw.exponential(low, high, parameter),
                    _ => draw.uniform(low, high),
                }
            }
        };
        Ok(Value::Int(value))
    }
}

/// The least or the greatest argument; a double if one of them is.
fn extreme(
    function: Function,
    arguments: &[Expression],
    variables: &[Value],
    draw: &mut Draw,
) -> Result<Value, &'static str> {
    let mut best: Option<Value> = None;
    let mut double = false;
    for argument in arguments {
        let value = argument.evaluate(variables, draw)?;
        double |= matches!(value, Value::Double(_));
        let better = best.is_none_or(|best| match (value, best, function) {
            (Value::Int(a), Value::Int(b), Function::Least) => a < b,
            (Value::Int(a), Value::Int(b), _) => a > b,
            (a, b, Function::Least) => a.as_double() < b.as_double(),
            (a, b, _) => a.as_double() > b.as_double(),
        });
        if better {
            best = Some(value);
        }
    }
    let best = best.ok_or("no arguments")?;
    Ok(if double {
        Value::Double(best.as_double())
    } else {
        best
    })
}

/// What is wrong with an expression: completes "expected …".
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Where, in bytes from the expression's start.
    pub(crate) at: usize,
    /// What would have been right.
    pub(crate) expected: String,
}

/// Reads an expression that takes up all of `text`; `slot` finds the variables.
///
/// # Errors
/// What was expected, and where.
pub(crate) fn parse(text: &str, slot: &dyn Fn(&str) -> Option<usize>) -> Result<Expression, Wrong> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        slot,
    };
    if text.len() > MAX_BYTES {
        return parser.wrong(format_args!("at most {MAX_BYTES} bytes"));
    }
    let expression = parser.sum()?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => parser.wrong("an operator (+ - * / %) or the end of the line"),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    slot: &'a dyn Fn(&str) -> Option<usize>,
}

impl<'a> Parser<'a> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong<T>(&self, expected: impl fmt::Display) -> Result<T, Wrong> {
        let expected = expected.to_string();
        let at = self.at;
        Err(Wrong { at, expected })
    }

    /// Takes bytes as long as `belongs`.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(|b| !belongs(b)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<Expression, Wrong> {
        let mut left = self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let operator = match sign {
                b'+' => Operator::Add,
                _ => Operator::Subtract,
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, Wrong> {
        let mut left = self.unary()?;
        while let Some(sign @ (b'*' | b'/' | b'%')) = self.peek() {
            self.at += 1;
            let operator = match sign {
                b'*' => Operator::Multiply,
                b'/' => Operator::Divide,
                _ => Operator::Remainder,
            };
            left = Expression::Binary(operator, Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, Wrong> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.wrong(format_args!("at most {MAX_DEPTH} levels"));
        }
        let expression = match self.peek() {
            Some(b'-') => {
                self.at += 1;
                Expression::Negate(Box::new(self.unary()?))
            }
            Some(b'+') => {
                self.at += 1;
                self.unary()?
            }
            Some(b'(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.close()?;
                inner
            }
            Some(b':') => self.variable()?,
            Some(b'0'..=b'9' | b'.') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.call()?,
            _ => return self.wrong("a number, a :variable, a function or a parenthesis"),
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn close(&mut self) -> Result<(), Wrong> {
        if self.peek() != Some(b')') {
            return self.wrong("a closing parenthesis");
        }
        self.at += 1;
        Ok(())
    }

    fn variable(&mut self) -> Result<Expression, Wrong> {
        let start = self.at;
        self.at += 1;
        let name = self.take_while(is_name);
        match (self.slot)(name) {
            Some(slot) => Ok(Expression::Variable(slot)),
            None => {
                self.at = start;
                self.wrong("a variable that an earlier \\set or --define gives a value")
            }
        }
    }

    fn number(&mut self) -> Result<Expression, Wrong> {
        let start = self.at;
        let mut digits = self.take_while(|b| b.is_ascii_digit() || b == b'.').len();
        if matches!(self.text.as_bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.take_while(|b| matches!(b, b'+' | b'-'));
            self.take_while(|b| b.is_ascii_digit());
            digits = self.at - start;
        }
        match Value::parse(&self.text[start..start + digits]) {
            Some(value) => Ok(Expression::Constant(value)),
            None => {
                self.at = start;
                self.wrong("a number")
            }
        }
    }

    fn call(&mut self) -> Result<Expression, Wrong> {
        let start = self.at;
        let name = self.take_while(is_name).to_ascii_lowercase();
        let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let Some((_, function, least, most)) = found else {
            self.at = start;
            let names: Vec<_> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            return self.wrong(format_args!("one of the functions {}", names.join(", ")));
        };
        if self.peek() != Some(b'(') {
            return self.wrong(format_args!("a parenthesis after {name}"));
        }
        self.at += 1;
        let mut arguments = vec![self.sum()?];
        while self.peek() == Some(b',') {
            self.at += 1;
            arguments.push(self.sum()?);
        }
        if !(*least..=*most).contains(&arguments.len()) {
            return self.wrong(format_args!("{least} arguments of {name}"));
        }
        self.close()?;
        Ok(Expression::Call(*function, arguments))
    }
}

/// Whether `byte` may stand in the name of a variable.
pub(crate) const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
