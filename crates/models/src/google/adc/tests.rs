use openclaw_testkit::login_server::{LoginServer, Scripted};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

use super::*;

const ROBOT: &str = include_str!("../../../tests/data/service-account.json");

/// The credentials of a file, with these variables.
async fn find(file: &str, variables: &[(&str, &str)]) -> Result<Option<Adc>, AdcError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("adc.json");
    std::fs::write(&path, file).unwrap();
    let path = path.display().to_string();
    let variables = [&[(FILE, path.as_str())], variables].concat();
    Adc::find(&variables.into_iter().collect()).await.map_err(|error| match error {
        AdcError::Damaged(_, what) => AdcError::Damaged(String::new(), what),
        AdcError::Kind { kind, .. } => AdcError::Kind { path: String::new(), kind },
        other => other,
    })
}

fn person() -> String {
    json!({"type": "authorized_user", "client_id": "c", "client_secret": "c-secret", "refresh_token": "r-secret",
        "quota_project_id": "payer"})
    .to_string()
}

const PLACE: (&str, &str) = (LOCATION, "europe-west4");

#[tokio::test]
async fn project_and_place_come_from_the_environment_first() {
    let named = find(ROBOT, &[PLACE, ("GCLOUD_PROJECT", "mine")]).await.unwrap().unwrap();
    assert_eq!((named.project.as_str(), named.location.as_str()), ("mine", "europe-west4"));
    let both = [PLACE, ("GCLOUD_PROJECT", "other"), ("GOOGLE_CLOUD_PROJECT", "mine")];
    assert_eq!(find(ROBOT, &both).await.unwrap().unwrap().project, "mine");
    assert_eq!(find(ROBOT, &[PLACE]).await.unwrap().unwrap().project, "file-project");
    let personal = find(&person(), &[PLACE]).await.unwrap().unwrap();
    assert_eq!((personal.project.as_str(), personal.quota_project.as_deref()), ("payer", Some("payer")));
}

#[tokio::test]
async fn files_that_are_none_are_told_apart() {
    let without = |name: &str| {
        let mut file: Value = serde_json::from_str(&person()).unwrap();
        file.as_object_mut().unwrap().shift_remove(name);
        file.to_string()
    };
    let damaged = |what| AdcError::Damaged(String::new(), what);
    let external = json!({"type": "external_account"}).to_string();
    let rows = [
        ("nonsense".to_owned(), damaged("it is no JSON")),
        ("{}".to_owned(), damaged("type is missing")),
        (without("refresh_token"), damaged("refresh_token is missing")),
        (without("client_secret"), damaged("client_secret is missing")),
        (external, AdcError::Kind { path: String::new(), kind: "external_account".to_owned() }),
        (without("quota_project_id"), AdcError::NoProject),
    ];
    for (file, expect) in rows {
        assert_eq!(find(&file, &[PLACE]).await.unwrap_err(), expect, "{file}");
    }
    assert_eq!(find(ROBOT, &[]).await.unwrap_err(), AdcError::NoLocation);
    let gone: Variables = [(FILE, "/nowhere/adc.json")].into_iter().collect();
    assert_eq!(Adc::find(&gone).await.unwrap_err(), AdcError::Unreadable("/nowhere/adc.json".to_owned()));
}

#[tokio::test]
async fn gclouds_own_file_is_found_and_its_absence_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().display().to_string();
    let variables: Variables = [("HOME", at.as_str()), PLACE].into_iter().collect();
    assert!(Adc::find(&variables).await.unwrap().is_none());
    let dir = home.path().join(".config/gcloud");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(DEFAULT_NAME), person()).unwrap();
    assert!(Adc::find(&variables).await.unwrap().is_some());
    assert!(Adc::find(&Variables::default()).await.unwrap().is_none());
}

#[test]
fn an_assertion_says_who_asks_and_is_signed() {
    let file: AdcFile = serde_json::from_str(ROBOT).unwrap();
    let pem = file.private_key.unwrap();
    let token = assertion("robot@x", Some("kid-1"), &pem.clone().into(), "https://token", 1_000).unwrap();
    let [header, claims, signature] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    let read =
        |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
    assert_eq!(read(header), json!({"alg": "RS256", "typ": "JWT", "kid": "kid-1"}));
    assert_eq!(
        read(claims),
        json!({"iss": "robot@x", "scope": SCOPE, "aud": "https://token", "iat": 1_000, "exp": 4_600})
    );
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let pair = RsaKeyPair::from_pkcs8(&STANDARD.decode(body).unwrap()).unwrap();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
    let signed = format!("{header}.{claims}");
    public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    assert_eq!(assertion("x", None, &"no key".into(), "a", 0), None);
}

#[tokio::test]
async fn a_token_is_kept_while_it_lasts_and_fetched_anew_when_refused() {
    let server = LoginServer::start().await;
    let servers = LoginServers::all_at(&server.url());
    let adc = find(&person(), &[PLACE]).await.unwrap().unwrap();
    let tokens = GoogleTokens::default();
    let http = Http::default();
    let token = async |refused: Option<&str>| {
        let refused = refused.map(SecretString::from);
        let found = tokens.token(&http, &servers, &adc, refused.as_ref()).await;
        found.map(|token| token.expose_secret().to_owned()).map_err(|error| error.to_string())
    };
    server.script([Scripted::tokens("t1", "-", 3_600), Scripted::tokens("t2", "-", 30)]);
    assert_eq!(token(None).await.unwrap(), "t1");
    assert_eq!(token(None).await.unwrap(), "t1");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].field("client_secret"), "c-secret");
    assert_eq!(token(Some("t1")).await.unwrap(), "t2");
    // Half a minute is not worth keeping.
    server.script([Scripted::status(
        400,
        r#"{"error":"invalid_grant","error_description":"r-secret is revoked"}"#,
    )]);
    let error = token(None).await.unwrap_err();
    assert_eq!(error, "the login is no longer valid (invalid_grant: [redacted] is revoked)");
}

#[tokio::test]
async fn a_service_account_exchanges_its_assertion() {
    let server = LoginServer::start().await;
    server.script([Scripted::tokens("robot-token", "-", 3_600)]);
    let file = ROBOT.replace("http://127.0.0.1:1/token", &format!("{}/token", server.url()));
    let adc = find(&file, &[PLACE]).await.unwrap().unwrap();
    let found =
        GoogleTokens::default().token(&Http::default(), &LoginServers::default(), &adc, None).await.unwrap();
    let parts: Value = serde_json::from_str(adc.key(&found).expose_secret()).unwrap();
    assert_eq!(
        parts,
        json!({"token": "robot-token", "projectId": "file-project", "location": "europe-west4"})
    );
    let asked = &server.requests()[0];
    assert_eq!((asked.path.as_str(), asked.field("grant_type")), ("/token", GRANT));
    assert_eq!(asked.field("assertion").split('.').count(), 3);
}
