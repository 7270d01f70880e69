import { z } from 'zod';
import { type FoundSkills, mergeSkills, type Skill } from './skill.js';
import type { SkillReader } from './skill-reader.js';

const words = z.array(z.string().min(1).max(200)).max(100);
const givenSkill = z.looseObject({
  name: z.string().min(1).max(200),
  content: z.string(),
  source: z.string().nullish(),
  description: z.string().nullish(),
  trigger: z
    .discriminatedUnion('type', [
      z.object({ type: z.literal('keyword'), keywords: words }),
      z.object({ type: z.literal('task'), triggers: words }),
      z.object({ type: z.literal('path'), paths: words }),
    ])
    .nullish(),
  is_agentskills_format: z.boolean().nullish(),
  disable_model_invocation: z.boolean().nullish(),
});

const NOTHING: FoundSkills = { skills: [], problems: [] };

/** `agent.agent_context` of the published API: the members that we know. */
export const agentContextSchema = z.looseObject({
  system_message_suffix: z.string().nullish(),
  user_message_suffix: z.string().nullish(),
  skills: z.array(givenSkill).max(500).nullish(),
  disabled_skills: z.array(z.string()).nullish(),
  load_project_skills: z.boolean().nullish(),
  load_user_skills: z.boolean().nullish(),
});

/**
 * The skills that an agent gets: those that its client sent, then those of the repository and of the user, where the
 * client asks for them; without those that it disables.
 */
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

function toSkill(given: z.infer<typeof givenSkill>): Skill {
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

function toTrigger(trigger: z.infer<typeof givenSkill>['trigger'] | null): Skill['trigger'] {
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
