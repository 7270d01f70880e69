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
    `${name} is no variable of Slipway and has no effect: ${advice}`,
  ]);
});

it('leaves alone what it knows, and what others set', () => {
  const known = configVariables().flatMap(({ name, isSecret }) =>
    isSecret ? [name, `${name}_FILE`] : [name],
  );
  const others = [
    ...[
      'PATH',
      'HOME',
      'USER',
      'PWD',
      'SHELL',
      'TERM',
      'HOSTNAME',
      'LANG',
      'TZ',
      'CI',
      'NODE_ENV',
      'NODE_OPTIONS',
      'no_proxy',
    ],
    ...[
      'GITHUB_TOKEN',
      'GITHUB_ACTIONS',
      'GITHUB_SERVER_URL',
      'GITHUB_REPOSITORY',
      'GITLAB_CI',
      'BITBUCKET_COMMIT',
      'GIT_DIR',
    ],
    ...[
      'SLIPWAY_URL',
      'SLIPWAY_SERVICE_HOST',
      'SLIPWAY_SERVICE_PORT',
      'SLIPWAY_PORT',
      'KUBERNETES_SERVICE_HOST',
    ],
    ...[
      'POSTGRES_PASSWORD',
      'PGHOST',
      'DOCKER_CONFIG',
      'AWS_REGION',
      'OTEL_EXPORTER_OTLP_CERTIFICATE',
      'OTEL_LOG_LEVEL',
    ],
  ];

  expect(unreadVariables(Object.fromEntries([...known, ...others].map((name) => [name, '1'])))).toEqual([]);
});
