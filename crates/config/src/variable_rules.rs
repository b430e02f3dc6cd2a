//! Rules on the names of environment variables: some make programs run code, others steer this
//! product and the tools it calls. The lists are for every place that has to know.

mod names;

use crate::redact::is_secret_name;
use names::{
    CODE, CODE_PREFIXES, CODE_SUFFIXES, CREDENTIALS, FAMILIES, STEERING, STEERING_PREFIXES, STEERING_SUFFIXES,
};

/// True if a variable can make a program run other code than it was called for, or load other
/// libraries. Case does not matter: some programs do not mind it either.
pub fn runs_code(name: &str) -> bool {
    is_one_of(&name.to_ascii_uppercase(), CODE, CODE_PREFIXES, CODE_SUFFIXES)
}

/// True if a variable says where files of this product or of a tool are, whom it trusts, or which
/// servers it talks to. All variables of a tool's family count as well, since nobody knows all of
/// them; its credentials do not.
pub(crate) fn steers(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_credential = || is_secret_name(name) || CREDENTIALS.contains(&upper.as_str());
    is_one_of(&upper, STEERING, STEERING_PREFIXES, STEERING_SUFFIXES)
        || FAMILIES.iter().any(|family| upper.starts_with(family)) && !is_credential()
}

fn is_one_of(upper: &str, names: &[&str], prefixes: &[&str], suffixes: &[&str]) -> bool {
    names.contains(&upper)
        || prefixes.iter().any(|prefix| upper.starts_with(prefix))
        || suffixes.iter().any(|suffix| upper.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_make_programs_run_code_are_known() {
        let names = "LD_PRELOAD ld_library_path DYLD_INSERT_LIBRARIES BASH_ENV ENV env SHELLOPTS BASHOPTS PS4 \
                     PROMPT_COMMAND BASH_FUNC_ls%% NODE_OPTIONS NODE_PATH PYTHONSTARTUP PYTHONPATH PYTHONHOME \
                     PYTHONINSPECT PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB JAVA_TOOL_OPTIONS _JAVA_OPTIONS \
                     JDK_JAVA_OPTIONS GIT_SSH GIT_SSH_COMMAND GIT_EXEC_PATH GIT_PROXY_COMMAND GIT_EXTERNAL_DIFF \
                     GIT_PAGER GIT_EDITOR GIT_ASKPASS GIT_CONFIG_COUNT GIT_TEMPLATE_DIR EDITOR VISUAL PAGER LESSOPEN \
                     LESSCLOSE MANPAGER IFS PATH GCONV_PATH HOSTALIASES LOCPATH RES_OPTIONS GLIBC_TUNABLES \
                     MALLOC_CHECK_ SSH_ASKPASS RUSTC_WRAPPER SSLKEYLOGFILE RUSTUP_TOOLCHAIN RUSTUP_HOME CARGO_HOME \
                     CARGO_BUILD_RUSTC CARGO_ALIAS_B CARGO_ENCODED_RUSTFLAGS COMPILER_PATH GCC_EXEC_PREFIX LIBRARY_PATH CFLAGS \
                     LD GOROOT GOTOOLCHAIN GOFLAGS GOCACHEPROG GOAUTH GOPROXY JAVA_HOME MAVEN_ARGS NPM_CONFIG_SCRIPT_SHELL \
                     PIP_INDEX_URL PYTEST_ADDOPTS MPLBACKEND RIPGREP_CONFIG_PATH FZF_DEFAULT_OPTS GNUPGHOME SSH_SK_PROVIDER \
                     DBUS_SESSION_BUS_ADDRESS KUBECONFIG HELM_PLUGINS CONTAINERS_CONF TF_CLI_CONFIG_FILE CLOUDSDK_PYTHON \
                     GH_CONFIG_DIR GIT_WORK_TREE RESTIC_PASSWORD_COMMAND ASAN_SYMBOLIZER_PATH";
        for name in names.split_whitespace() {
            assert!(runs_code(name), "{name}");
        }
        for name in
            "HOME ENVIRONMENT NODE_ENV GIT_AUTHOR_NAME CARGO_TERM_COLOR CARGO_REGISTRY_TOKEN GOOGLE_API_KEY \
             GITHUB_TOKEN PYTHONUNBUFFERED LESSON A"
                .split_whitespace()
        {
            assert!(!runs_code(name), "{name}");
        }
    }

    #[test]
    fn names_that_redirect_the_product_are_known() {
        for name in "OPENCLAW_STATE_DIR clawdbot_config_path https_proxy ALL_PROXY OPENAI_BASE_URL XDG_CONFIG_HOME NODE_ENV \
                     AWS_ENDPOINT_URL AWS_ENDPOINT_URL_BEDROCK AWS_REGION AWS_DEFAULT_REGION AWS_PROFILE AWS_CA_BUNDLE \
                     AWS_BEDROCK_SKIP_AUTH GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION GCLOUD_PROJECT GCE_METADATA_HOST \
                     SSL_CERT_FILE HOME SSH_AUTH_SOCK VAULT_ADDR DOCKER_HOST PI_CODING_AGENT_DIR"
            .split_whitespace()
        {
            assert!(steers(name), "{name}");
        }
    }

    #[test]
    fn whole_families_of_tools_are_known() {
        for name in "CARGO_NET_OFFLINE RUSTUP_DIST_SERVER GIT_TRACE GIT_SSL_NO_VERIFY PYTHONUNBUFFERED PYENV_VERSION \
                     NPM_EXECPATH BUN_INSTALL DENO_DIR COMPOSER_HOME GEM_SPEC_CACHE GRADLE_RO_DEP_CACHE CMAKE_TOOLCHAIN_FILE \
                     CCACHE_PREFIX HOMEBREW_BOTTLE_DOMAIN ASDF_DATA_DIR GH_HOST KUBE_CONTEXT HELM_DRIVER TF_DATA_DIR \
                     PULUMI_HOME ANSIBLE_LIBRARY SYSTEMD_LESS QT_QPA_PLATFORM"
            .split_whitespace()
        {
            assert!(steers(name) || runs_code(name), "{name}");
        }
    }

    #[test]
    fn credentials_for_tools_are_neither() {
        for name in "GITHUB_TOKEN GH_TOKEN GITLAB_TOKEN NPM_TOKEN CARGO_REGISTRY_TOKEN HOMEBREW_GITHUB_API_TOKEN OPENAI_API_KEY \
                     GOOGLE_API_KEY GEMINI_API_KEY AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN VAULT_TOKEN \
                     AWS_BEARER_TOKEN_BEDROCK AZURE_OPENAI_API_KEY DOCKER_PASSWORD PULUMI_ACCESS_TOKEN PGPASSWORD DATABASE_URL \
                     TELEGRAM_BOT_TOKEN SMTP_PASS PROXY HARMLESS"
            .split_whitespace()
        {
            assert!(!steers(name) && !runs_code(name), "{name}");
        }
    }

    #[test]
    fn names_of_secrets_are_known() {
        for name in "GITHUB_TOKEN OPENAI_API_KEY AWS_SECRET_ACCESS_KEY SECRET_KEY_BASE PGPASSWORD DB_PASS MY_PAT SIGNING_KEY"
            .split_whitespace()
        {
            assert!(crate::redact::is_secret_name(name), "{name}");
        }
        for name in ["PATH", "PWD", "HOME", "TOKEN_FILE", "SECRETS_PATH", "KEYBOARD", "PASSENGER"] {
            assert!(!crate::redact::is_secret_name(name), "{name}");
        }
    }
}
