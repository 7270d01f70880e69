// Builds the image of the docker backend's sandboxes.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { COMMAND_LINES } from './lib/command-lines.ts';

const commandLine = COMMAND_LINES['scripts/image-agent-server.mjs'].parse();
const { base, tag, packages } = commandLine.opts();
const buildArgs = Object.entries({ BASE_IMAGE: base, PACKAGES: packages }).flatMap(([name, value]) =>
  value === undefined ? [] : ['--build-arg', `${name}=${value}`],
);
const { status, error } = spawnSync(
  'docker',
  ['build', '--target', 'agent-server', '--tag', tag, ...buildArgs, ...commandLine.processedArgs[0], '.'],
  { cwd: fileURLToPath(new URL('..', import.meta.url)), stdio: 'inherit' },
);
if (error?.code === 'ENOENT') {
  process.stderr.write('This needs the docker command\n');
} else if (error) {
  throw error;
}
process.exitCode = status ?? 1;
