//! Shared code of the workloads in Python: the interpreter, the files that it opens, and the output of Tare's
//! scripts.
//!
//! The scripts in the folder `python` travel with the trial as files and are run by the arm's interpreter, because
//! the interpreter is what is compared. They need only its standard library (and NumPy where stated), and print one
//! line of JSON.
//! An interpreter opens its library by name, which neither the loader nor a list of packages for all distributions
//! covers. For packing, the interpreter itself is therefore asked, after the imports, which files it loaded.
//! Limits: misses modules that are imported only in a branch that the imports do not reach.
//! Not a workload itself.

use tare_model::{CommandCall, MetricSpec, Params, Path, RawOutput, Recipe, Sample};

use super::declared::Declared;
use super::tool_text::{self, whole};
use super::{Accepts, DecodeError, DefaultValue, ParamError, ParamSpec, Tool, Workload};

/// Ignores the user's packages and Python variables, and writes no bytecode.
pub(super) const ISOLATED: &[&str] = &["-I", "-B"];

/// A workload that is one of Tare's scripts.
#[derive(Debug)]
pub(super) struct PythonScript {
    pub(super) declared: Declared,
    /// The script's file name.
    pub(super) script: &'static str,
    pub(super) source: &'static str,
    /// The interpreter's options.
    pub(super) options: &'static [&'static str],
    /// What the script imports.
    pub(super) modules: &'static str,
    /// Code appended to the one that prints the version.
    pub(super) version: &'static str,
    /// The names of the parameters that are its arguments.
    pub(super) arguments: &'static [&'static str],
    /// Decodes its output into samples of these metrics.
    pub(super) decode: fn(&[MetricSpec], &RawOutput) -> Result<Vec<Sample>, DecodeError>,
}

impl Workload for PythonScript {
    fn declared(&self) -> &Declared {
        &self.declared
    }

    fn recipe(&self, params: &Params, path: Option<Path>) -> Result<Recipe, ParamError> {
        let params = self.complete(params, path)?;
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|name| whole(&params, name))
            .collect();
        let call = call(&params, self.options, self.script, self.source, &arguments)?;
        Ok(Recipe::Probe(call.to_probe()))
    }

    fn tools(&self, params: &Params) -> Vec<Tool> {
        let mut tool = tool(params, self.modules);
        if let Some(code) = tool.version.last_mut() {
            code.push_str(self.version);
        }
        vec![tool]
    }

    fn decode(&self, raw: &RawOutput) -> Result<Vec<Sample>, DecodeError> {
        (self.decode)(self.metrics(), raw)
    }
}

/// Prints the interpreter and every file that it has loaded, one absolute path a line.
const LOADED: &str = "import os, sys, sysconfig
# The module with the build's settings has another name everywhere and is imported when it is asked for.
sysconfig.get_config_vars()
paths = {sys.executable, os.path.realpath(sys.executable)}
for module in list(sys.modules.values()):
    for name in (getattr(module, '__file__', None), getattr(module, '__cached__', None)):
        if name:
            paths.add(os.path.abspath(name))
# Landmarks by which the interpreter finds its folders, and the settings of a virtual environment.
paths.add(os.path.join(sysconfig.get_path('stdlib'), 'os.py'))
paths.add(os.path.join(sys.prefix, 'pyvenv.cfg'))
dynamic = os.path.join(sysconfig.get_path('platstdlib'), 'lib-dynload')
for folder, _, names in os.walk(dynamic):
    paths.update(os.path.join(folder, name) for name in names)
print('\\n'.join(sorted(path for path in paths if os.path.exists(path))))";

/// Prints the interpreter's file: behind a shim of pyenv or asdf it differs from the one called.
pub const OWN_FILE: &str = "import sys; print(sys.executable)";

/// The interpreter parameter of every workload in Python.
pub const PYTHON: ParamSpec = ParamSpec {
    name: "python",
    default: DefaultValue::Text("python3"),
    accepts: Accepts::Any,
    doc: "the interpreter, by its name on the arm's search path or by its path",
};

/// The interpreter.
pub fn program(params: &Params) -> Result<&str, ParamError> {
    tool_text::program(
        params,
        "python",
        "use a name such as `python3` or a path such as `/usr/bin/python3`",
    )
}

/// The interpreter as a tool whose files are those loaded after `import MODULES`.
pub fn tool(params: &Params, modules: &str) -> Tool {
    tool_after(params, &format!("import {modules}"))
}

/// The same, with every module of a package, as one may import others only when it starts work. Modules for other
/// systems cannot be imported, and are not needed.
pub fn tool_of_package(params: &Params, modules: &str, package: &str) -> Tool {
    tool_after(
        params,
        &format!(
            "import {modules}, importlib, pkgutil, {package}
for found in pkgutil.iter_modules({package}.__path__, '{package}.'):
    try:
        found.ispkg or importlib.import_module(found.name)
    except Exception:
        pass"
        ),
    )
}

fn tool_after(params: &Params, imports: &str) -> Tool {
    let version = "import sys, sysconfig; print(sys.implementation.name, sys.version, \
        sysconfig.get_config_var('CONFIG_ARGS'))";
    Tool {
        files_told_by: vec!["-c".to_owned(), format!("{imports}\n{LOADED}")],
        ..Tool::new(params.text("python").unwrap_or("python3"), &["-c", version])
    }
}

/// A call of one of Tare's scripts.
pub fn call(
    params: &Params,
    options: &[&str],
    name: &str,
    source: &str,
    arguments: &[String],
) -> Result<CommandCall, ParamError> {
    let mut argv: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    argv.push(name.to_owned());
    argv.extend_from_slice(arguments);
    Ok(CommandCall::new(program(params)?, argv).with_file(name, source))
}

#[cfg(test)]
mod tests {
    use tare_model::command::{ADDRESS, FOLDER, PORT};

    #[test]
    fn python_scripts_contain_no_placeholders() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/workload/python");
        let mut n_scripts = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for stands in [ADDRESS, FOLDER, PORT] {
                assert!(!text.contains(stands), "{stands}");
            }
            n_scripts += 1;
        }
        assert_eq!(n_scripts, 5);
    }
}
