/** A command of a page, without the variables before it, and the words that it consists of. */
export interface DocumentedCommand {
  page: string;
  text: string;
  variables: string[];
  words: string[];
}

const PROGRAM = /^(npm|npx|node|sh|helm|docker compose config)( |$)/;
const VARIABLES = /^(?:[A-Z][A-Z0-9_]*=\S* +)+/;
const FENCE = /^ *(```|~~~)[^\n]*\n([^]*?)^ *\1/gm;

/** Those of fenced blocks and of code within the text; `create\|list` in a table are two commands. */
export function commandsOf(page: string, markdown: string): DocumentedCommand[] {
  const blocks = [...markdown.matchAll(FENCE)].flatMap(([, , block = '']) =>
    block.replaceAll(/\\\n */g, '').split('\n'),
  );
  const spans = [...markdown.replaceAll(FENCE, '').matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  return [...blocks, ...spans]
    .map((line) =>
      line
        .trim()
        .replace(/^\$ /, '')
        .replace(/ +# .*$/, ''),
    )
    .filter((line) => PROGRAM.test(line.replace(VARIABLES, '')))
    .flatMap((line) => line.split(/ (?:&&|;|\|) /))
    .map((command) => command.trim())
    .filter((command) => PROGRAM.test(command.replace(VARIABLES, '')))
    .flatMap(alternatives)
    .map((text) => ({
      page,
      text,
      variables: [...(VARIABLES.exec(text)?.[0] ?? '').matchAll(/([A-Z][A-Z0-9_]*)=/g)].map(
        ([, name = '']) => name,
      ),
      words: wordsOf(text.replace(VARIABLES, '')),
    }));
}

export function wordsOf(command: string): string[] {
  return [...command.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replaceAll(/["']/g, ''));
}

function alternatives(command: string): string[] {
  const list = /\S+(?:\\\|\S+)+/.exec(command)?.[0];
  return list === undefined ? [command] : list.split('\\|').map((one) => command.replace(list, one));
}
