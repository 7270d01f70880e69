import { expect, it } from '@jest/globals';
import { toolEnvironment } from './tool-view.js';

const ALWAYS = {
  LANG: 'C.UTF-8',
  GIT_TERMINAL_PROMPT: '0',
  GIT_PAGER: 'cat',
  PAGER: 'cat',
  GIT_EDITOR: 'true',
  EDITOR: 'true',
};

it('passes on the variables on the list, and nothing else', () => {
  const environment = toolEnvironment({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    https_proxy: 'http://proxy:3128',
    NODE_USE_ENV_PROXY: '1',
    SSL_CERT_FILE: '/corp.pem',
    NODE_EXTRA_CA_CERTS: '/extra.pem',
    OH_SESSION_API_KEYS_0: 'k',
    LLM_API_KEY: 'k',
    NODE_OPTIONS: '--inspect',
    PATHOLOGY: 'x',
    SLIPWAY_SANDBOX: 'instance/id',
  });
  expect(environment).toEqual({
    PATH: '/bin',
    HOME: '/home/a',
    LC_ALL: 'C.UTF-8',
    https_proxy: 'http://proxy:3128',
    NODE_USE_ENV_PROXY: '1',
    SSL_CERT_FILE: '/corp.pem',
    GIT_SSL_CAINFO: '/corp.pem',
    CURL_CA_BUNDLE: '/corp.pem',
    REQUESTS_CA_BUNDLE: '/corp.pem',
    PIP_CERT: '/corp.pem',
    NODE_EXTRA_CA_CERTS: '/extra.pem',
    AWS_CA_BUNDLE: '/corp.pem',
    CARGO_HTTP_CAINFO: '/corp.pem',
    HEX_CACERTS_PATH: '/corp.pem',
    DENO_CERT: '/corp.pem',
    SLIPWAY_SANDBOX: 'instance/id',
    ...ALWAYS,
  });
});

it.each([
  // jenkins-infra/helpdesk#3130, redhat-developer/vscode-java#4473: names of files that are not ASCII.
  [{ LANG: 'de_DE.UTF-8' }, { LANG: 'de_DE.UTF-8' }],
  // Without the list, it is unknown which variables are the image's.
  [{ JAVA_HOME: '/opt/java' }, {}],
  [{ JAVA_HOME: '/opt/java', SLIPWAY_SERVICE_VARIABLES: '' }, { JAVA_HOME: '/opt/java' }],
  [
    { RUSTUP_HOME: '/rust', OPERATORS: 'own', SLIPWAY_SERVICE_VARIABLES: 'HOME,OPERATORS' },
    { RUSTUP_HOME: '/rust' },
  ],
  [
    { WORKER_1: '8011', SLIPWAY_TOOL_VARIABLES: 'WORKER_1', SLIPWAY_SERVICE_VARIABLES: 'WORKER_1' },
    { WORKER_1: '8011' },
  ],
  [
    {
      NODE_OPTIONS: '--inspect',
      LD_PRELOAD: 'x',
      OH_WORKSPACE_PATH: '/w',
      NPM_TOKEN: 'x',
      DB_PASSWORD: 'x',
      HOSTNAME: 'sbx-1',
      KUBERNETES_SERVICE_HOST: '10.0.0.1',
      SLIPWAY_SERVICE_VARIABLES: '',
    },
    {},
  ],
])('passes on the variables of the image: %j', (own, expected) => {
  expect(toolEnvironment(own)).toEqual({
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ...ALWAYS,
    ...expected,
  });
});
