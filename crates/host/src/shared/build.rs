//! Builds a shared server from its settings: one function per kind of backend.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use patterm_gateway::ServerSpec;
use patterm_gateway::backend::Backend;
use patterm_gateway::backend::container::{ExecSpec, Mount, RunSpec};
use patterm_gateway::backend::local::Local;
use patterm_gateway::backend::remote::Remote;
use patterm_gateway::backend::unusable::Unusable;
use patterm_keeper::{Program, Size};
use patterm_panes::variables::{expand, expand_values};
use patterm_project::project_file::{
    ContainerSettings, ImageSettings, LocalSettings, Location, MountDefinition, RemoteSettings,
    ServerDefinition,
};

use super::Shared;
use super::containers::endpoint;
use super::spawner::KeeperSpawner;

/// The size of a terminal that is never shown: these programs have pipes.
const SIZE: Size = Size::DEFAULT;

type Env = BTreeMap<String, String>;

/// Builds a server. If its settings cannot be used, every call to it returns the reason.
pub(super) fn spec(shared: &Shared, name: &str, server: &ServerDefinition) -> ServerSpec {
    let variables = shared.parts.panes.environments.server();
    let built = expand_values(&server.env, variables).map_err(String::from).and_then(|env| {
        let backend = match &server.location {
            Location::Local(settings) => local(shared, name, settings, &env)?,
            Location::Container(settings) => container(shared, settings, &env)?,
            Location::Image(settings) => image(shared, settings, &env)?,
            Location::Remote(settings) => remote(shared, settings)?,
        };
        Ok((backend, env))
    });
    let (backend, env) = built.unwrap_or_else(|fault| {
        tracing::error!(server = name, fault, "cannot use the settings of a shared server");
        let fault = format!("the settings of `{name}` cannot be used: {fault}");
        (Arc::new(Unusable { fault }) as Arc<dyn Backend>, Env::new())
    });
    let (location, share, limits) = (&server.location, server.share, server.limits);
    ServerSpec {
        // A different fingerprint means a different server; it includes the values of variables.
        fingerprint: format!(
            "{location:?} {env:?} {share:?} {limits:?}{}",
            backend.fault().unwrap_or_default()
        ),
        backend,
        share,
        limits,
        roots: roots(shared.parts.project.root()),
        tools: server.tools.all.clone(),
    }
}

fn local(
    shared: &Shared,
    name: &str,
    settings: &LocalSettings,
    env: &Env,
) -> Result<Arc<dyn Backend>, String> {
    let environment = shared.parts.panes.environments.server();
    let argv =
        settings.command.iter().map(|word| expand(word, environment)).collect::<Result<_, _>>()?;
    let mut env_of_program = environment.clone();
    env_of_program.extend(env.clone());
    let root = shared.parts.project.root();
    let working_dir =
        settings.directory.as_ref().map_or_else(|| root.to_owned(), |folder| root.join(folder));
    let program = Program { argv, env: env_of_program, working_dir, size: SIZE };
    let spawner = Arc::new(KeeperSpawner::new(Arc::downgrade(&shared.parts.panes), name));
    Ok(Arc::new(Local { program, spawner }))
}

fn container(
    shared: &Shared,
    settings: &ContainerSettings,
    env: &Env,
) -> Result<Arc<dyn Backend>, String> {
    Ok(shared.containers()?.exec(ExecSpec {
        endpoint: endpoint(&settings.engine),
        container: settings.container.clone(),
        command: settings.command.clone(),
        env: env.clone(),
    }))
}

fn image(shared: &Shared, settings: &ImageSettings, env: &Env) -> Result<Arc<dyn Backend>, String> {
    let mut spec = RunSpec::with_defaults(endpoint(&settings.engine), &settings.image);
    spec.command = settings.command.clone();
    spec.env = env.clone();
    spec.network = settings.network;
    if let Some(megabytes) = settings.memory_mb {
        spec.memory_bytes = megabytes.saturating_mul(1 << 20);
    }
    if let Some(processes) = settings.processes {
        spec.processes = u32::try_from(processes).unwrap_or(u32::MAX);
    }
    let root = shared.parts.project.root();
    spec.mounts = settings.mounts.iter().map(|definition| mount(definition, root)).collect();
    Ok(shared.containers()?.own(spec))
}

fn remote(shared: &Shared, settings: &RemoteSettings) -> Result<Arc<dyn Backend>, String> {
    let environment = shared.parts.panes.environments.server();
    let headers = expand_values(&settings.headers, environment)?;
    Ok(Arc::new(Remote { url: expand(&settings.url, environment)?, headers }))
}

fn mount(definition: &MountDefinition, root: &Path) -> Mount {
    let MountDefinition { source, target, writable } = definition;
    let source = root.join(source.strip_prefix("./").unwrap_or(source));
    Mount { source, target: target.clone(), writable: *writable }
}

/// The project's folder as the MCP roots that servers get.
fn roots(root: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in root.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    serde_json::json!([{ "uri": uri, "name": name }]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_percent_encoded() {
        let text = roots(Path::new("/a b/ä"));
        assert_eq!(text, r#"[{"name":"ä","uri":"file:///a%20b/%C3%A4"}]"#);
    }
}
