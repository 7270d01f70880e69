interface PresetHost {
  host: string;
  methods: string[];
  paths?: string[];
}

const reading = (...hosts: string[]): PresetHost[] =>
  hosts.map((host) => ({ host, methods: ['GET', 'HEAD'] }));
const asking = (host: string, path: string): PresetHost => ({ host, methods: ['POST'], paths: [path] });

const BY_KIND = {
  npm: [
    ...reading('registry.npmjs.org', 'registry.yarnpkg.com', 'nodejs.org'),
    // What npm, yarn and pnpm ask about known holes.
    asking('registry.npmjs.org', '/-/npm/v1/security/*'),
    asking('registry.yarnpkg.com', '/-/npm/v1/security/*'),
  ],
  pypi: reading('pypi.org', 'files.pythonhosted.org'),
  debian: reading(
    'deb.debian.org',
    'security.debian.org',
    'archive.ubuntu.com',
    'security.ubuntu.com',
    'ports.ubuntu.com',
  ),
  go: reading('proxy.golang.org', 'sum.golang.org', 'go.dev', 'dl.google.com'),
  crates: reading('crates.io', 'index.crates.io', 'static.crates.io', 'static.rust-lang.org'),
  maven: reading(
    'repo.maven.apache.org',
    'repo1.maven.org',
    'plugins.gradle.org',
    'plugins-artifacts.gradle.org',
    'services.gradle.org',
    'downloads.gradle.org',
  ),
  playwright: reading('cdn.playwright.dev', 'playwright.download.prss.microsoft.com'),
};

/**
 * What builds need, by name, and for reading alone: what publishes carries data to any account whose token it has. An operator
 * replaces the whole list (`SANDBOX_EGRESS_PRESETS`). `common` is what Codex calls common dependencies
 * (https://developers.openai.com/codex/cloud/internet-access), without hosts that anybody may write to.
 */
export const EGRESS_PRESETS: Readonly<Record<string, readonly PresetHost[]>> = {
  ...BY_KIND,
  docker: [
    ...reading(
      'registry-1.docker.io',
      'auth.docker.io',
      'production.cloudflare.docker.com',
      'ghcr.io',
      'quay.io',
    ),
    // Clients that are signed in ask for their token so (https://distribution.github.io/distribution/spec/auth/oauth/).
    asking('auth.docker.io', '/token'),
    asking('ghcr.io', '/token'),
    asking('quay.io', '/v2/auth'),
  ],
  common: [
    ...Object.values(BY_KIND).flat(),
    ...reading(
      'dl-cdn.alpinelinux.org',
      'rubygems.org',
      'index.rubygems.org',
      'repo.packagist.org',
      'api.nuget.org',
      'hex.pm',
      'repo.hex.pm',
      'hackage.haskell.org',
      'cpan.org',
      'www.cpan.org',
    ),
  ],
};
