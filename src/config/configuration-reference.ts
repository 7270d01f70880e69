import { configVariableGroups } from './load-config.js';
import type { Variable } from './variables.js';

const HEAD = `# Configuration

<!-- Written by npm run docs:configuration from src/config; change it there. -->

The service reads environment variables and, where the environment has no value, a file \`.env\` in its working directory. All are optional,
except for \`ENCRYPTION_KEYS\` with \`DATABASE_URL\`. An empty value counts as absent. A wrong one ends the start, with a line for each that
names the variable and what would be right. Each secret \`X\` can be in a file instead, which \`X_FILE\` names; one newline at its end is not
part of the secret. [Configure](operations/configure.md) explains how those belong together that need more than a sentence.
`;

/** The text of `docs/configuration.md`. */
export function configurationReference(): string {
  const sections = configVariableGroups().map(
    ({ title, variables }) => `## ${title}\n\n${variables.map(entryOf).join('\n')}`,
  );
  return [HEAD, ...sections].join('\n');
}

/** With a heading, to which the search and links lead. */
function entryOf({ name, description, default: initial, form, isSecret, backends }: Variable): string {
  const facts = [
    form.startsWith('must ') ? `Value ${form}` : `Value: ${form}`,
    ...(initial === undefined ? [] : [`default: \`${initial}\``]),
    ...(backends.length === 0 ? [] : [`backend: ${backends.join(', ')}`]),
    ...(isSecret ? [`secret: also as \`${name}_FILE\``] : []),
  ];
  return `### \`${name}\`\n\n${description}\n\n${facts.join(' · ')}\n`;
}
