import path from 'node:path';
import type { SkillFile } from './skill-file.js';

const MAX_DEPTH = 5;
const MAX_IMPORTS = 30;
/** Characters: what does not fit stays a name. */
const MAX_IMPORTED = 60_000;
/** Code, or what stands for a file: `@AGENTS.md`, `@rules/style.md`. A repository may write anything, so both parts end. */
const CODE_OR_IMPORT = /(```[\s\S]*?(?:```|$)|`[^`\n]*`)|(?<=^|\s)@([\w.-]{0,100}[./][\w./-]{0,200}\w)/g;

/** Reads files by their absolute paths, as far as they lie in the repository. */
type ReadFiles = (files: readonly string[]) => Promise<SkillFile[]>;

/**
 * Puts the files that rules import in their place, each once; what is given anyway is only named there. Files outside of
 * the folders of the repository are not asked for.
 */
export async function withImports(
  files: readonly SkillFile[],
  folder: string,
  read: ReadFiles,
): Promise<SkillFile[]> {
  const known = new Map(files.map((each) => [each.file, each]));
  const isImportable = (file: string, importer: string): boolean =>
    [folder, path.dirname(importer)].some((place) => file.startsWith(`${place}/`));
  let latest = files.filter(isRule);
  for (let depth = 0; depth < MAX_DEPTH && latest.length > 0; depth += 1) {
    const named = latest.flatMap((each) =>
      importsOf(each).filter((file) => isImportable(file, each.file) && !known.has(file)),
    );
    const wanted = [...new Set(named)].slice(0, MAX_IMPORTS);
    latest = (wanted.length === 0 ? [] : await read(wanted)).filter(({ kind }) => kind !== 'unread');
    latest.forEach((each) => known.set(each.file, each));
  }
  const given = new Set(files.filter(isRule).map(({ file }) => file));
  let left = MAX_IMPORTED;
  const expanded = (rule: SkillFile): string =>
    rule.content.replaceAll(CODE_OR_IMPORT, (whole, _code, name: string | undefined) => {
      const found = name === undefined ? undefined : known.get(path.resolve(path.dirname(rule.file), name));
      if (found === undefined || found.content.length > left) {
        return whole;
      }
      if (given.has(found.file)) {
        return `[${name}: see there]`;
      }
      given.add(found.file);
      left -= found.content.length;
      return expanded(found);
    });
  return files.map((each) => (isRule(each) ? { ...each, content: expanded(each) } : each));
}

function isRule({ kind }: SkillFile): boolean {
  return kind === 'rules' || kind === 'rule';
}

function importsOf({ file, content }: SkillFile): string[] {
  return Array.from(content.matchAll(CODE_OR_IMPORT), ([, , name]) =>
    name === undefined ? [] : [path.resolve(path.dirname(file), name)],
  ).flat();
}
