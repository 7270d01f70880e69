import { parse } from 'yaml';
import { errorMessage } from './errors/error-message.js';

const MAX_FRONTMATTER = 8_192;
const BLOCK = /^\uFEFF?\s*---[ \t]*\r?\n([\s\S]*?\r?\n)?---[ \t]*(\r?\n|$)/;
/** A Markdown file may begin with a line of dashes, so a name with a colon must follow. */
const UNENDED = /^\uFEFF?\s*---[ \t]*\r?\n\s*[\w-]+[ \t]*:/;

/** Splits an untrusted text that may begin with YAML between two lines of dashes. @throws Error */
export function splitFrontmatter(text: string): { head: unknown; content: string } {
  const match = BLOCK.exec(text);
  if (match === null) {
    if (UNENDED.test(text)) {
      throw new Error('its frontmatter has no end: a line with three dashes');
    }
    return { head: {}, content: text.trim() };
  }
  const [whole, yaml = ''] = match;
  if (yaml.length > MAX_FRONTMATTER) {
    throw new Error(`its frontmatter has more than ${MAX_FRONTMATTER} characters`);
  }
  return { head: parseYaml(yaml), content: text.slice(whole.length).trim() };
}

/** Aliases can expand without limit, and deep nesting can exhaust the stack. */
function parseYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: 10, logLevel: 'error' });
  } catch (error) {
    const [reason = ''] = errorMessage(error).split('\n');
    throw new Error(`its frontmatter is not YAML: ${reason.replace(/:$/, '')}`, { cause: error });
  }
}
