//! Bar charts as inline SVG, drawn with the colours of the page's style.

use crate::lab::markup::escape;
use std::fmt::Write as _;

/// Width of the drawing; the page scales it.
const WIDTH: f64 = 860.0;
/// Where bars begin: left of it stand the labels.
const LEFT: f64 = 150.0;
/// Where the longest bar ends: right of it stand the figures.
const RIGHT: f64 = WIDTH - 150.0;
/// Height of a bar's row, and of a group's title.
const ROW: f64 = 18.0;
const TITLE: f64 = 26.0;
/// Height of the scale above the groups.
const SCALE: f64 = 22.0;
/// How many colours the style has.
const COLOURS: usize = 8;

/// Bars that belong together.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) bars: Vec<Bar>,
}

/// One bar.
pub(super) struct Bar {
    pub(super) label: String,
    /// The place of its variant, which gives the colour.
    pub(super) colour: usize,
    /// Where its parts end, ascending. The first part begins at the chart's origin or, in a chart
    /// of ranges, at the first of these.
    pub(super) ends: Vec<f64>,
    /// What is written behind it.
    pub(super) text: String,
}

/// How values become lengths.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    /// Bars from 0, and a dashed line at this value.
    Linear { mark: f64 },
    /// Ranges between the first and the last end, on a logarithmic scale.
    Logarithmic,
}

/// The class of the colour of the variant at `index`.
pub(super) fn colour(index: usize) -> String {
    format!("s{}", index % COLOURS)
}

/// A drawing of `groups`; `what` names it to those who cannot see it.
pub(super) fn draw(what: &str, groups: &[Group], scale: Scale) -> String {
    let Some(axis) = Axis::over(groups, scale) else {
        return "<p class=\"soft\">Nothing was measured.</p>\n".to_owned();
    };
    let rows: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = SCALE + groups.len() as f64 * TITLE + rows as f64 * ROW + 4.0;
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">",
        escape(what)
    );
    axis.draw(&mut out, height);
    if let Scale::Linear { mark } = scale {
        let x = axis.x(mark);
        let _ = writeln!(
            out,
            "<line class=\"mark\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{SCALE}\" y2=\"{height}\" />"
        );
    }
    let mut y = SCALE;
    for group in groups {
        let base = y + TITLE - 8.0;
        let title = escape(&group.title);
        let _ = writeln!(
            out,
            "<text class=\"title\" x=\"0\" y=\"{base}\">{title}</text>"
        );
        y += TITLE;
        for bar in &group.bars {
            axis.bar(&mut out, bar, y);
            y += ROW;
        }
    }
    out.push_str("</svg>\n");
    out
}

/// From values to places.
struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that has room for all values; `None` when there are none.
    fn over(groups: &[Group], scale: Scale) -> Option<Self> {
        let bars = groups.iter().flat_map(|group| &group.bars);
        let ends = bars.flat_map(|bar| &bar.ends).copied();
        let ends: Vec<_> = ends.filter(|value| value.is_finite()).collect();
        let high = ends.iter().copied().reduce(f64::max)?;
        let least = ends.iter().copied().reduce(f64::min)?;
        let (low, high) = match scale {
            Scale::Linear { mark } => (0.0, high.max(mark).max(1e-9)),
            Scale::Logarithmic => {
                let low = (0.8 * least).max(1.0).log10();
                (low, high.max(1.0).log10().max(low + 0.1))
            }
        };
        Some(Self { scale, low, high })
    }

    fn x(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Linear { .. } => value,
            Scale::Logarithmic => value.max(1.0).log10(),
        };
        LEFT + (place - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    /// The values with a line and a figure.
    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear { .. } => {
                let rough = self.high / 6.0;
                let power = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
                let step = step.into_iter().find(|step| *step >= rough);
                let step = step.unwrap_or(rough);
                let count = (self.high / step + 1e-9).floor() as u32;
                (0..=count).map(|index| f64::from(index) * step).collect()
            }
            Scale::Logarithmic => {
                let powers =
                    (self.low.floor() as i32..=self.high.ceil() as i32).map(|p| 10_f64.powi(p));
                let ticks = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|f| f * power));
                let range = self.low - 1e-9..=self.high + 1e-9;
                ticks.filter(|tick| range.contains(&tick.log10())).collect()
            }
        }
    }

    fn draw(&self, out: &mut String, height: f64) {
        for tick in self.ticks() {
            let x = self.x(tick);
            let text = short(tick);
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{SCALE}\" \
                 y2=\"{height}\" /><text class=\"soft\" x=\"{x:.1}\" y=\"12\" \
                 text-anchor=\"middle\">{text}</text>"
            );
        }
    }

    fn bar(&self, out: &mut String, bar: &Bar, y: f64) {
        let (base, label) = (y + ROW - 5.0, escape(&bar.label));
        let _ = writeln!(
            out,
            "<text class=\"soft\" x=\"{}\" y=\"{base}\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0
        );
        let mut ends = bar.ends.iter().copied();
        let start = match self.scale {
            Scale::Linear { .. } => Some(0.0),
            Scale::Logarithmic => ends.next(),
        };
        let mut from = self.x(start.unwrap_or(0.0));
        let class = colour(bar.colour);
        for (index, end) in ends.enumerate() {
            // Parts after the first are fainter.
            let faint = if index > 0 { " faint" } else { "" };
            let to = self.x(end);
            let width = (to - from).max(1.0);
            let _ = writeln!(
                out,
                "<rect class=\"{class}{faint}\" x=\"{from:.1}\" y=\"{:.1}\" \
                 width=\"{width:.1}\" height=\"{:.1}\"><title>{label}: {}</title></rect>",
                y + 2.0,
                ROW - 4.0,
                escape(&bar.text)
            );
            from = to.max(from);
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{base}\">{}</text>",
            from + 6.0,
            escape(&bar.text)
        );
    }
}

/// A tick's value with no more digits than it needs.
fn short(value: f64) -> String {
    match value {
        1000.0.. => format!("{}k", value / 1000.0),
        _ => format!("{}", (value * 1000.0).round() / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(ends: &[f64]) -> Group {
        Group {
            title: "a < b".to_owned(),
            bars: vec![Bar {
                label: "x".to_owned(),
                colour: 9,
                ends: ends.to_vec(),
                text: "t & u".to_owned(),
            }],
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let groups = [group(&[1.0]), group(&[2.0, 4.0])];
        let svg = draw("what", &groups, Scale::Linear { mark: 1.0 });
        let full = RIGHT - LEFT;
        for (part, width) in [("s1\"", full / 4.0), ("s1 faint\"", full / 2.0)] {
            let expected = format!("width=\"{width:.1}\"");
            assert!(svg.contains(part) && svg.contains(&expected), "{svg}");
        }
        assert!(
            svg.contains("a &lt; b") && svg.contains("t &amp; u"),
            "{svg}"
        );
        assert_eq!(svg.matches("<line class=\"mark\"").count(), 1);
    }

    #[test]
    fn ranges_are_logarithmic_and_nothing_is_no_chart() {
        let ends = [125.0, 1000.0, 8000.0];
        let svg = draw("what", &[group(&ends)], Scale::Logarithmic);
        // The axis begins at four fifths of the least value, here at 100.
        let part = 8_f64.log10() / 80_f64.log10();
        let width = format!("width=\"{:.1}\"", part * (RIGHT - LEFT));
        assert_eq!(svg.matches(&width).count(), 2, "{svg}");
        assert!(svg.contains(">5k<") && svg.contains(">100<"), "{svg}");
        assert!(draw("what", &[group(&[])], Scale::Logarithmic).starts_with("<p"));
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis {
            scale: Scale::Linear { mark: 1.0 },
            low: 0.0,
            high: 2.3,
        };
        assert_eq!(axis.ticks(), [0.0, 0.5, 1.0, 1.5, 2.0]);
    }
}
