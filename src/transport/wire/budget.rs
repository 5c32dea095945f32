//! How much of a candidate is shown, from generous to tight.

use crate::domain::Argument;

/// Room for one candidate, in characters unless said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Server description.
    pub(super) server_chars: usize,
    /// Server metadata.
    pub(super) metadata_chars: usize,
    /// Tool description.
    pub(super) tool_chars: usize,
    /// Description of one argument.
    pub(super) argument_chars: usize,
    /// Type of one argument.
    pub(super) type_chars: usize,
    /// Optional arguments, counted.
    optional_max: usize,
}

impl Budget {
    /// The arguments that are shown: all required ones, then optional ones while there is room.
    pub(super) fn arguments<'a>(
        &self,
        arguments: &'a [Argument],
    ) -> impl Iterator<Item = &'a Argument> + use<'a> {
        let required = arguments.iter().filter(|argument| argument.required);
        let optional = arguments.iter().filter(|argument| !argument.required);
        required.chain(optional.take(self.optional_max))
    }
}

/// Budgets to try in turn. Argument names are worth more than long texts, so texts shrink first;
/// the last one leaves names of required arguments alone.
pub(super) fn tightening() -> impl Iterator<Item = Budget> {
    let rows: [[usize; 6]; 12] = [
        [300, 200, 1_200, 300, 300, 40],
        [200, 160, 800, 200, 200, 30],
        [160, 120, 600, 140, 160, 24],
        [120, 120, 450, 110, 120, 20],
        [100, 100, 350, 90, 100, 16],
        [80, 80, 300, 70, 80, 12],
        [80, 80, 250, 60, 60, 9],
        [60, 60, 200, 40, 50, 6],
        [40, 40, 150, 30, 40, 3],
        [20, 40, 100, 16, 30, 0],
        [8, 20, 60, 8, 16, 0],
        [0, 0, 20, 0, 8, 0],
    ];
    rows.into_iter().map(
        |[
            server_chars,
            metadata_chars,
            tool_chars,
            argument_chars,
            type_chars,
            optional_max,
        ]| {
            Budget {
                server_chars,
                metadata_chars,
                tool_chars,
                argument_chars,
                type_chars,
                optional_max,
            }
        },
    )
}
