// Builds the image of the docker backend's sandboxes.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `npm run image:agent-server -- [options] [-- options of docker build]

  --base IMAGE      a Debian or Ubuntu with Node.js 24 and npm (node:24-bookworm-slim)
  --tag NAME        what to call it (slipway-agent-server)
  --packages "…"    further Debian packages for agents to work with: "python3 build-essential"
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    base: { type: 'string' },
    tag: { type: 'string', default: 'slipway-agent-server' },
    packages: { type: 'string' },
    help: { type: 'boolean' },
  },
});

if (values.help) {
  process.stdout.write(USAGE);
} else {
  const buildArgs = Object.entries({ BASE_IMAGE: values.base, PACKAGES: values.packages }).flatMap(
    ([name, value]) => (value === undefined ? [] : ['--build-arg', `${name}=${value}`]),
  );
  const { status, error } = spawnSync(
    'docker',
    ['build', '--target', 'agent-server', '--tag', values.tag, ...buildArgs, ...positionals, '.'],
    { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' },
  );
  if (error?.code === 'ENOENT') {
    process.stderr.write('This needs the docker command\n');
  } else if (error) {
    throw error;
  }
  process.exitCode = status ?? 1;
}
