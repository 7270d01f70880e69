import { expect, it } from '@jest/globals';
import { configVariables, unreadVariables } from './load-config.js';

it.each([
  ['RATE_LIMIT_PER_MINUT', 'did you mean RATE_LIMIT_PER_MINUTE?'],
  ['DATABSE_URL', 'did you mean DATABASE_URL?'],
  ['ENCRYPTION_KEY', 'did you mean ENCRYPTION_KEYS?'],
  ['ENCRYPTION_KEYS_FIEL', 'did you mean ENCRYPTION_KEYS_FILE?'],
  ['LOGLEVEL', 'did you mean LOG_LEVEL?'],
  ['HOSTS', 'did you mean HOST?'],
  ['SANDBOX_VOLUMES', 'docs/configuration.md has all of them'],
  ['ENTERPRISE_SSO_REALM', 'docs/configuration.md has all of them'],
])('%s: %s', (name, advice) => {
  expect(unreadVariables({ [name]: '1' })).toEqual([
    `${name} is no variable of this service and has no effect: ${advice}`,
  ]);
});

it('leaves alone what it knows, and what others set', () => {
  const known = configVariables().flatMap(({ name, isSecret }) =>
    isSecret ? [name, `${name}_FILE`] : [name],
  );
  const others = {
    PATH: '1',
    HOME: '1',
    HOSTNAME: '1',
    CI: '1',
    NODE_OPTIONS: '1',
    no_proxy: '1',
    GITHUB_TOKEN: '1',
    GITHUB_REPOSITORY: '1',
    GITLAB_CI: '1',
    BITBUCKET_COMMIT: '1',
    SLIPWAY_URL: '1',
    SLIPWAY_SERVICE_HOST: '1',
    KUBERNETES_SERVICE_HOST: '1',
    POSTGRES_PASSWORD: '1',
    OTEL_EXPORTER_OTLP_CERTIFICATE: '1',
  };
  expect(unreadVariables({ ...Object.fromEntries(known.map((name) => [name, '1'])), ...others })).toEqual([]);
});
