//! The parser on a leash: what it may cost is bounded by the length of the text.
//!
//! The parser tries one reading of some tokens after another, and forgets what it has found out. A
//! construction that is tried twice on each level costs `2^depth`, and nobody knows all of them. So
//! its steps are counted wherever it asks its dialect something, which it does many times for every
//! expression, query and table. A text that takes more of them than its tokens are worth is passed
//! through.
//!
//! Invariants:
//! - one step costs the same whatever the text: blanks are one token, and long tokens are short
//!   (strings) or refused before;
//! - the dialect answers as PostgreSQL's does, so the trees are the same.

use std::any::{Any, TypeId};
use std::cell::Cell;

use sqlparser::ast::{Expr, Statement};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::MAX_DEPTH;
use crate::reason::Reason;

/// Steps a text may take for each of its tokens, and beside them. Ordinary statements take at most
/// half of the first.
const PER_TOKEN: usize = 64;
const BASE: usize = 5_000;

/// Bytes of a string that are worth keeping: all strings are masked.
const MAX_STRING: usize = 16;

/// What is thrown when the steps are used up; caught by [`is_over`]'s caller.
struct Over;

/// Whether a panic says that the steps were used up.
pub(super) fn is_over(panic: &(dyn Any + Send)) -> bool {
    panic.is::<Over>()
}

/// PostgreSQL's dialect, which counts what it is asked.
#[derive(Debug)]
struct Counting {
    inner: PostgreSqlDialect,
    left: Cell<usize>,
}

impl Counting {
    const fn new(steps: usize) -> Self {
        Self {
            inner: PostgreSqlDialect {},
            left: Cell::new(steps),
        }
    }

    /// Counts a step. The parser takes an error for a reading that failed, and tries the next. So
    /// this unwinds, past the panic hook, to whoever called the parser.
    #[inline]
    fn step(&self) -> &PostgreSqlDialect {
        let Some(left) = self.left.get().checked_sub(1) else {
            std::panic::resume_unwind(Box::new(Over));
        };
        self.left.set(left);
        &self.inner
    }
}

/// The tokens of a masked text, none of which costs much to look at.
fn tokens(masked: &str) -> Result<Vec<TokenWithSpan>, Reason> {
    let mut tokenizer = Tokenizer::new(&PostgreSqlDialect {}, masked);
    let tokens = tokenizer.tokenize_with_location();
    let mut tokens = tokens.map_err(|_| Reason::Unparsed)?;
    let is_blank = |token: &Token| matches!(token, Token::Whitespace(_));
    tokens.dedup_by(|next, kept| is_blank(&next.token) && is_blank(&kept.token));
    for token in &mut tokens {
        if let Token::SingleQuotedString(string) = &mut token.token
            && string.len() > MAX_STRING
        {
            string.truncate(MAX_STRING);
            string.shrink_to_fit();
        }
    }
    Ok(tokens)
}

/// The statements of a masked text.
///
/// # Errors
///
/// Why there are none. Unwinds if the steps are used up, as [`is_over`] tells.
pub(super) fn parse(masked: &str) -> Result<Vec<Statement>, Reason> {
    let tokens = tokens(masked)?;
    let dialect = Counting::new(allowed(&tokens));
    parse_tokens(tokens, &dialect)
}

/// Steps that these tokens are worth.
const fn allowed(tokens: &[TokenWithSpan]) -> usize {
    BASE + PER_TOKEN * tokens.len()
}

fn parse_tokens(
    tokens: Vec<TokenWithSpan>,
    dialect: &dyn Dialect,
) -> Result<Vec<Statement>, Reason> {
    let parser = Parser::new(dialect).with_recursion_limit(MAX_DEPTH);
    let parsed = parser.with_tokens_with_locations(tokens).parse_statements();
    parsed.map_err(|error| match error {
        ParserError::RecursionLimitExceeded => Reason::TooComplex,
        _ => Reason::Unparsed,
    })
}

/// Passes questions with a plain answer on, and counts them.
macro_rules! counted {
    ($($name:ident)*) => {
        $(fn $name(&self) -> bool {
            self.step().$name()
        })*
    };
}

/// All that the parser may ask.
/// `trees_are_those_of_the_dialect_itself` fails if an upgrade brings something new that matters.
impl Dialect for Counting {
    fn dialect(&self) -> TypeId {
        self.step().dialect()
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        self.step().parse_prefix(parser)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        self.step().parse_infix(parser, expr, precedence)
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        self.step().parse_statement(parser)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        self.step().get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        self.inner.prec_value(precedence)
    }

    fn prec_unknown(&self) -> u8 {
        self.inner.prec_unknown()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        self.inner.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        self.inner.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.inner.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.inner.is_identifier_part(ch)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        self.inner.is_custom_operator_part(ch)
    }

    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        self.step().is_reserved_for_identifier(keyword)
    }

    fn is_column_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_column_alias(keyword, parser)
    }

    fn is_table_alias(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_table_alias(keyword, parser)
    }

    fn is_table_factor(&self, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        self.step().is_table_factor(keyword, parser)
    }

    counted! {
        allow_extract_custom allow_extract_single_quotes convert_type_before_value
        describe_requires_table_keyword ignores_wildcard_escapes require_interval_qualifier
        requires_single_line_comment_whitespace support_map_literal_syntax
        supports_aliased_function_args supports_alter_column_type_using
        supports_alter_user_as_alter_role supports_array_join_syntax
        supports_array_typedef_with_brackets supports_array_typedef_without_element_type
        supports_asc_desc_in_column_definition supports_bang_not_operator
        supports_binary_kw_as_cast supports_bitwise_shift_operators
        supports_boolean_literals supports_column_definition_trailing_commas
        supports_comma_separated_drop_column_list supports_comma_separated_set_assignments
        supports_comma_separated_trim supports_comment_on supports_comment_optimizer_hint
        supports_connect_by supports_constraint_keyword_without_name
        supports_create_index_with_clause supports_create_table_like_parenthesized
        supports_create_table_multi_schema_info_sources supports_create_table_select
        supports_create_table_using supports_create_view_comment_syntax
        supports_cross_join_constraint supports_cte_without_as
        supports_data_type_signed_suffix supports_detach supports_dictionary_syntax
        supports_dollar_as_money_prefix supports_dollar_placeholder
        supports_double_ampersand_operator supports_empty_projections
        supports_end_transaction_modifier supports_eq_alias_assignment
        supports_exclude_constraint supports_execute_immediate
        supports_explain_with_utility_options supports_extract_comma_syntax
        supports_factorial_operator supports_filter_during_aggregation
        supports_from_first_insert supports_from_first_select supports_from_trailing_commas
        supports_geometric_types supports_group_by_expr supports_group_by_with_modifier
        supports_in_empty_list supports_in_unparenthesized_expr supports_insert_format
        supports_insert_set supports_insert_table_alias supports_insert_table_function
        supports_insert_table_query supports_install supports_interpolate
        supports_interval_options supports_key_column_option supports_lambda_functions
        supports_leading_comma_before_table_options
        supports_left_associative_joins_without_parens supports_limit_by
        supports_limit_comma supports_listen_notify supports_load_data
        supports_load_extension supports_long_type_as_bigint
        supports_map_literal_with_angle_brackets supports_match_against
        supports_match_recognize supports_multiline_comment_hints
        supports_named_fn_args_with_assignment_operator
        supports_named_fn_args_with_colon_operator supports_named_fn_args_with_eq_operator
        supports_named_fn_args_with_expr_name supports_named_fn_args_with_rarrow_operator
        supports_nested_comments supports_notnull_operator
        supports_numeric_literal_underscores supports_numeric_prefix
        supports_object_name_double_dot_notation supports_optimize_table
        supports_order_by_all supports_order_by_using_operator supports_outer_join_operator
        supports_parens_around_table_factor supports_parenthesized_set_variables
        supports_partiql supports_partition_by_after_order_by supports_pipe_operator
        supports_prewhere supports_projection_trailing_commas
        supports_quote_delimited_string supports_select_exclude supports_select_expr_star
        supports_select_format supports_select_item_multi_column_alias
        supports_select_modifiers supports_select_wildcard_except
        supports_select_wildcard_exclude supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_select_wildcard_replace
        supports_select_wildcard_with_alias supports_semantic_view_table_factor
        supports_set_names supports_set_stmt_without_operator supports_settings
        supports_show_like_before_in supports_space_separated_column_options
        supports_start_transaction_modifier supports_string_escape_constant
        supports_string_literal_backslash_escape supports_string_literal_concatenation
        supports_string_literal_concatenation_with_newline supports_struct_literal
        supports_subquery_as_function_arg supports_table_hints
        supports_table_sample_before_alias supports_table_versioning
        supports_top_before_distinct supports_trailing_commas supports_triple_quoted_string
        supports_try_convert supports_unicode_string_literal supports_unpivot_expr
        supports_update_order_by supports_user_host_grantee supports_values_as_table_factor
        supports_window_clause_named_window_reference
        supports_window_function_null_treatment_arg supports_with_fill
        supports_within_after_array_aggregation supports_xml_expressions
    }
}

#[cfg(test)]
#[path = "steps_tests.rs"]
mod tests;
