//! Web servers of Python projects: Django, FastAPI and Flask.

use std::path::Path;

use super::suggestion::{Suggestion, read};

/// Files in which an application is usually created, in the order in which they are tried.
const MODULES: [&str; 8] = [
    "main.py",
    "app.py",
    "app/main.py",
    "src/main.py",
    "api/main.py",
    "app/__init__.py",
    "wsgi.py",
    "server.py",
];

/// The development servers of a Python project.
pub(super) fn servers(root: &Path) -> Vec<Suggestion> {
    let run = runner(root);
    let mut found = Vec::new();
    if root.join("manage.py").is_file() {
        found.push(Suggestion {
            why: "manage.py belongs to Django, whose development server listens on port 8000"
                .into(),
            port: Some(8000),
            ..Suggestion::new("django", &format!("{run}python manage.py runserver"), "Python")
        });
    }
    if let Some((file, app)) = application(root, "FastAPI(") {
        let module = module(file);
        found.push(Suggestion {
            why: format!("{file} creates `{app} = FastAPI(...)`; uvicorn listens on port 8000"),
            port: Some(8000),
            ..Suggestion::new("api", &format!("{run}uvicorn {module}:{app} --reload"), "Python")
        });
    }
    if let Some((file, app)) = application(root, "Flask(") {
        let module = module(file);
        found.push(Suggestion {
            why: format!("{file} creates `{app} = Flask(...)`; Flask listens on port 5000"),
            port: Some(5000),
            ..Suggestion::new(
                "flask",
                &format!("{run}flask --app {module}:{app} run --debug"),
                "Python",
            )
        });
    }
    found
}

/// The prefix that runs a program in the project's virtual environment.
fn runner(root: &Path) -> &'static str {
    let known =
        [("uv.lock", "uv run "), ("poetry.lock", "poetry run "), ("Pipfile", "pipenv run ")];
    known.iter().find(|(file, _)| root.join(file).is_file()).map_or("", |(_, run)| run)
}

/// The file that creates an application, and the variable's name.
fn application(root: &Path, call: &str) -> Option<(&'static str, String)> {
    MODULES.iter().find_map(|file| {
        let text = read(&root.join(file))?;
        let name = text.lines().find_map(|line| {
            // At the top level only: a variable inside a function cannot be imported.
            let (name, value) = line.split_once('=')?;
            let name = name.split(':').next()?.trim_end();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_name = !name.is_empty() && name.chars().all(plain);
            (is_name && value.trim_start().starts_with(call)).then(|| name.to_owned())
        })?;
        Some((*file, name))
    })
}

/// The module of a file, as Python imports it.
fn module(file: &str) -> String {
    file.trim_end_matches(".py").trim_end_matches("/__init__").replace('/', ".")
}
