//! What the name of an environment variable says: that it makes programs run code, or that it steers this product. The lists
//! are for every place that has to know.

/// Names that make a shell, an interpreter, a compiler, a package manager or a common tool run other code than it was
/// called for, or load other libraries.
const CODE: &[&str] = &[
    // Shells and the C library.
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "CDPATH",
    "ENV",
    "FPATH",
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "HOSTALIASES",
    "IFS",
    "INPUTRC",
    "LOCALDOMAIN",
    "LOCPATH",
    "NLSPATH",
    "PATH",
    "PROMPT_COMMAND",
    "PS4",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "SHELL",
    "SHELLOPTS",
    "SSLKEYLOGFILE",
    "TERMCAP",
    "TERMINFO",
    "ZDOTDIR",
    // Interpreters and runtimes.
    "CLASSPATH",
    "ELECTRON_RUN_AS_NODE",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_LOAD_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERLLIB",
    "PERL_MB_OPT",
    "PERL_MM_OPT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    "TCLLIBPATH",
    "_JAVA_OPTIONS",
    // Compilers and build tools.
    "ANT_OPTS",
    "AR",
    "BUNDLE_GEMFILE",
    "CC",
    "CXX",
    "GEM_HOME",
    "GEM_PATH",
    "GNUMAKEFLAGS",
    "GOENV",
    "GOFLAGS",
    "GRADLE_OPTS",
    "LINKER",
    "MAKEFLAGS",
    "MAKEFILES",
    "MAVEN_OPTS",
    "MFLAGS",
    "RUSTC",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "SBT_OPTS",
    // Tools that call other programs.
    "BROWSER",
    "CURL_HOME",
    "CVS_RSH",
    "EDITOR",
    "EXINIT",
    "FCEDIT",
    "HGRCPATH",
    "KUBECONFIG",
    "LESS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSOPEN",
    "MANPAGER",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PSQLRC",
    "RSYNC_RSH",
    "SVN_SSH",
    "TAR_OPTIONS",
    "VIMINIT",
    "VISUAL",
    "WGETRC",
];
/// The same, by how the name begins.
const CODE_PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "CARGO_BUILD_RUST",
    "CARGO_TARGET_",
    "CGO_",
    "COMPLUS_",
    "CORECLR_",
    "COR_",
    "DOTNET_",
    "DYLD_",
    "ERL_",
    "GIO_",
    "GIT_ALTERNATE_",
    "GIT_ASKPASS",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_TEMPLATE_DIR",
    "GTK_MODULES",
    "GTK_PATH",
    "LD_",
    "LUA_",
    "MALLOC_",
    "NPM_CONFIG_",
    "PERL5",
    "PIP_",
    "QT_PLUGIN_",
    "R_PROFILE",
    "R_ENVIRON",
    "UV_",
    "YARN_",
];
/// The same, by how it ends.
const CODE_SUFFIXES: &[&str] = &["_ASKPASS", "_EDITOR", "_PAGER", "_WRAPPER", "_LAUNCHER"];

/// Names, beginnings and endings that say where this product and common clients keep their files, whom they trust and
/// which servers they talk to.
const STEERING: &[&str] = &[
    "CURL_CA_BUNDLE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HOME",
    "OLLAMA_HOST",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USERPROFILE",
];
const STEERING_PREFIXES: &[&str] = &[
    "AWS_CONFIG_",
    "AWS_PROFILE",
    "AWS_SHARED_",
    "CLAWDBOT_",
    "CLOUDSDK_",
    "DOCKER_",
    "NODE_",
    "OPENCLAW_",
    "XDG_",
];
const STEERING_SUFFIXES: &[&str] =
    &["_API_BASE", "_API_URL", "_BASE_URL", "_ENDPOINT", "_ENDPOINT_URL", "_PROXY"];

/// Whether a variable can make a program run other code than it was called for, or load other libraries. Case does not
/// matter: some programs do not mind it either.
pub fn runs_code(name: &str) -> bool {
    is_one_of(name, CODE, CODE_PREFIXES, CODE_SUFFIXES)
}

/// Whether a variable says where this product's files are, whom it trusts, or which servers it talks to.
pub(crate) fn steers(name: &str) -> bool {
    is_one_of(name, STEERING, STEERING_PREFIXES, STEERING_SUFFIXES)
}

fn is_one_of(name: &str, names: &[&str], prefixes: &[&str], suffixes: &[&str]) -> bool {
    let upper = name.to_ascii_uppercase();
    names.contains(&upper.as_str())
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
                     MALLOC_CHECK_ SSH_ASKPASS RUSTC_WRAPPER SSLKEYLOGFILE";
        for name in names.split_whitespace() {
            assert!(runs_code(name), "{name}");
        }
        for name in
            "HOME LD MY_LD_PRELOAD ENVIRONMENT NODE_ENV GIT_AUTHOR_NAME CARGO_TERM_COLOR LESSON A".split(' ')
        {
            assert!(!runs_code(name), "{name}");
        }
    }

    #[test]
    fn names_that_redirect_the_product_are_known() {
        for name in "OPENCLAW_STATE_DIR clawdbot_config_path https_proxy ALL_PROXY OPENAI_BASE_URL XDG_CONFIG_HOME NODE_ENV \
                     AWS_ENDPOINT_URL SSL_CERT_FILE HOME"
            .split_whitespace()
        {
            assert!(steers(name), "{name}");
        }
        for name in ["OPENAI_API_KEY", "DATABASE_URL", "AWS_REGION", "PROXY"] {
            assert!(!steers(name), "{name}");
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
