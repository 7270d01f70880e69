import { agentContextSchema, type GivenSkill } from '@slipway/agent-protocol/conversation-schemas.js';
import { type FoundSkills, mergeSkills, type Skill } from './skill.js';
import type { SkillReader } from './skill-reader.js';

const NOTHING: FoundSkills = { skills: [], problems: [] };

/** The client's skills, then those of repository and user where the client asks for them, without disabled ones. */
export async function skillsOfAgent(
  agent: Record<string, unknown>,
  workingDir: string,
  reader: SkillReader,
): Promise<FoundSkills> {
  const { data: context } = agentContextSchema.safeParse(agent['agent_context']);
  if (context === undefined) {
    return NOTHING;
  }
  const [project, user] = await Promise.all([
    context.load_project_skills ? reader.projectIfReadable(workingDir) : NOTHING,
    context.load_user_skills ? reader.user() : NOTHING,
  ]);
  const disabled = new Set(context.disabled_skills);
  const given = (context.skills ?? []).map(toSkill);
  return {
    skills: mergeSkills(given, project.skills, user.skills).filter(({ name }) => !disabled.has(name)),
    problems: [...project.problems, ...user.problems],
  };
}

function toSkill(given: GivenSkill): Skill {
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
