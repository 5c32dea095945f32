//! The command line of `docker run`, read as a container of ours.

use crate::catalog::import::NoteKind;
use crate::catalog::import::wiring::Wiring;
use crate::domain::Launch;

impl Wiring {
    /// `docker run` with the options that our own start of a container has as well.
    pub(super) fn docker_run(
        &mut self,
        args: &[String],
        env: &[(String, String)],
    ) -> Option<Launch> {
        let mut rest = args.iter();
        let mut variables: Vec<(String, String)> = Vec::new();
        let image = loop {
            let option = rest.next()?.as_str();
            if !option.starts_with('-') {
                break option.to_owned();
            }
            let (flag, inline) = match option.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (option, None),
            };
            match flag {
                "-i" | "-t" | "-it" | "-ti" | "--rm" | "--init" | "--interactive" | "--tty" => {}
                "-e" | "--env" => {
                    let given = inline.or_else(|| rest.next().cloned())?;
                    let (name, value) = match given.split_once('=') {
                        Some((name, value)) => (name.to_owned(), value.to_owned()),
                        None => {
                            let outer = env.iter().find(|(name, _)| *name == given);
                            let own = format!("${{{given}}}");
                            let value = outer.map_or(own, |(_, value)| value.clone());
                            (given, value)
                        }
                    };
                    variables.push((name, value));
                }
                "-v" | "--volume" | "--mount" | "-p" | "--publish" | "--network" | "--net"
                | "--platform" | "-u" | "--user" | "--name" | "--pull" | "--add-host" | "-w"
                | "--workdir" => {
                    if inline.is_none() {
                        rest.next()?;
                    }
                    if flag != "--name" && flag != "--pull" {
                        let why = format!("option `{flag}` of `docker run` was left out");
                        self.say(NoteKind::Repaired, why);
                    }
                }
                _ => {
                    let why = format!("option `{flag}` of `docker run` is not known: not run");
                    self.say(NoteKind::Noted, why);
                    return None;
                }
            }
        };
        let args: Vec<String> = rest.cloned().collect();
        self.image(&image, &args, &variables)
    }
}
