import { agentContextSchema, type GivenSkill } from '@slipway/agent-protocol/conversation-schemas.js';
import { type FoundSkills, mergeSkills, type Skill } from './skill.js';
import { NOTHING, type SkillReader } from './skill-reader.js';
import path from 'node:path';
import { jsonAt, jsonList, jsonText } from '@slipway/common/json-access.js';
import { asHttpError } from '../files/file-routes.js';
import { HttpError } from '../http/http-error.js';
import type { FoundPlugin } from '../conversations/conversation-state.js';

interface SkillSources {
  agent: Record<string, unknown>;
  workingDir: string;
  /** Folders. */
  plugins?: readonly string[];
}

/** The skills of the client, of repository and user where the client asks for them, and of plugins, in this order. */
export async function skillsOf(sources: SkillSources, reader: SkillReader): Promise<FoundSkills> {
  const plugins = (sources.plugins ?? []).map((folder) => reader.ifReadable('plugin', folder));
  const found = await Promise.all([skillsOfAgent(sources, reader), ...plugins]);
  return {
    skills: mergeSkills(...found.map(({ skills }) => skills)),
    problems: found.flatMap(({ problems }) => problems),
  };
}

async function skillsOfAgent({ agent, workingDir }: SkillSources, reader: SkillReader): Promise<FoundSkills> {
  const { data: context } = agentContextSchema.safeParse(agent['agent_context']);
  if (context === undefined) {
    return NOTHING;
  }
  const [project, user] = await Promise.all([
    context.load_project_skills ? reader.ifReadable('project', workingDir) : NOTHING,
    context.load_user_skills ? reader.user() : NOTHING,
  ]);
  const disabled = new Set(context.disabled_skills);
  const given = (context.skills ?? []).map(toSkill);
  return {
    skills: mergeSkills(given, project.skills, user.skills).filter(({ name }) => !disabled.has(name)),
    problems: [...project.problems, ...user.problems],
  };
}

export function toSkill(given: GivenSkill): Skill {
  const trigger = toTrigger(given.trigger ?? null);
  return {
    name: given.name,
    content: given.content,
    source: given.source ?? null,
    description: given.description ?? null,
    trigger,
    isAgentSkill: given.is_agentskills_format ?? false,
    isHidden: given.disable_model_invocation === true || trigger?.kind === 'paths',
  };
}

function toTrigger(trigger: GivenSkill['trigger'] | null): Skill['trigger'] {
  switch (trigger?.type) {
    case 'keyword':
      return { kind: 'words', words: trigger.keywords };
    case 'task':
      return { kind: 'words', words: trigger.triggers };
    case 'path':
      return { kind: 'paths', globs: trigger.paths };
    default:
      return null;
  }
}

const MANIFESTS = ['.plugin/marketplace.json', '.claude-plugin/marketplace.json'];

/** Finds `plugin` or `plugin@marketplace` in the workspace; nothing is downloaded. @throws HttpError 400, 404 */
export async function findPlugin(
  agent: Record<string, unknown>,
  workingDir: string,
  reference: string,
  reader: SkillReader,
): Promise<FoundPlugin> {
  const { plugin, marketplace } = parseReference(reference);
  const registered = marketplacesOf(agent);
  if (registered.length === 0) {
    throw new HttpError(
      400,
      'No marketplaces are registered: start the conversation with registered_marketplaces in agent_context.',
    );
  }
  const chosen = registered.filter(({ name }) => marketplace === null || name === marketplace);
  const folders = chosen.flatMap(({ source }) =>
    isFolder(source) ? [path.resolve(workingDir, source)] : [],
  );
  for (const folder of folders) {
    const source = await sourceOf(folder, plugin, reader);
    if (source !== null) {
      const found = pluginFolder(folder, source);
      return { folder: found, ...(await reader.plugin(found).catch(asHttpError)) };
    }
  }
  if (folders.length < chosen.length) {
    throw new HttpError(
      400,
      'This server downloads no marketplaces: clone them into the workspace and register their folders.',
    );
  }
  throw new HttpError(404, `Plugin '${reference}' not found`);
}

function parseReference(reference: string): { plugin: string; marketplace: string | null } {
  const at = reference.lastIndexOf('@');
  const plugin = at === -1 ? reference : reference.slice(0, at);
  const marketplace = at === -1 ? null : reference.slice(at + 1);
  if (plugin === '' || marketplace === '') {
    throw new HttpError(400, 'A plugin is named as plugin-name or plugin-name@marketplace-name.');
  }
  return { plugin, marketplace };
}

function marketplacesOf(agent: Record<string, unknown>): { name: string; source: string }[] {
  return jsonList(agent, 'agent_context', 'registered_marketplaces').flatMap((entry) => {
    const [name, source] = [jsonText(entry, 'name'), jsonText(entry, 'source')];
    return name === null || source === null ? [] : [{ name, source }];
  });
}

/** All other sources are fetched from somewhere. */
function isFolder(source: string): boolean {
  return !/^[a-z][a-z0-9+.-]*:|^[^/]+@[^/]+:/i.test(source);
}

/** The place of a plugin, as a marketplace states it; null if the folder is no marketplace or lacks the plugin. */
async function sourceOf(folder: string, plugin: string, reader: SkillReader): Promise<string | null> {
  for (const manifest of MANIFESTS) {
    const content = await reader.readJson(path.join(folder, manifest)).catch(asHttpError);
    const entry = jsonList(content, 'plugins').find((one) => jsonAt(one, 'name') === plugin);
    if (entry !== undefined) {
      return jsonText(entry, 'source') ?? jsonText(entry, 'source', 'path') ?? '';
    }
  }
  return null;
}

function pluginFolder(marketplace: string, source: string): string {
  const folder = path.resolve(marketplace, source);
  if (!isFolder(source) || !folder.startsWith(`${marketplace}/`)) {
    throw new HttpError(
      400,
      'The plugin does not lie in the folder of its marketplace: this server downloads none.',
    );
  }
  return folder;
}
