import { Router } from 'express';
import { z } from 'zod';
import { parseJson } from '@slipway/common/json-access.js';
import { absolutePath, asHttpError } from '../files/file-routes.js';
import { WorkspaceFileError, type WorkspaceFiles } from '../files/workspace-files.js';
import { parseRequest } from '../http/request-parsing.js';
import { toSkill } from './agent-context.js';
import { mergeSkills, type Skill } from './skill.js';
import type { SkillReader } from './skill-reader.js';

const PROGRAM_PORT = 'WORKER_';
const MAX_HOOKS_BYTES = 100_000;

const skillsSchema = z
  .object({
    load_user: z.boolean().default(true),
    load_project: z.boolean().default(true),
    project_dir: z.string().nullish(),
    sandbox_config: z
      .object({
        exposed_urls: z
          .array(z.object({ name: z.string(), url: z.string(), port: z.number().int() }))
          .max(100)
          .default([]),
      })
      .nullish(),
  })
  .default({ load_user: true, load_project: true });
const hooksSchema = z.object({ project_dir: z.string().nullish() }).default({});

type ExposedUrls = NonNullable<z.infer<typeof skillsSchema>['sandbox_config']>['exposed_urls'];

/** `/api/skills`: skills of a folder's repository and of the sandbox's user. This server downloads no public ones. */
export function skillRoutes(reader: SkillReader): Router {
  const router = Router();

  router.post('/', async (request, response) => {
    const body = parseRequest(skillsSchema, 'body', request.body);
    const folder = body.project_dir;
    const [project, user] = await Promise.all([
      body.load_project && folder ? reader.project(absolutePath(folder)).catch(asHttpError) : null,
      body.load_user ? reader.user() : null,
    ]);
    const sandbox = programsSkill(body.sandbox_config?.exposed_urls ?? []);
    response.json({
      skills: mergeSkills(project?.skills ?? [], user?.skills ?? [], sandbox).map(toSkillInfo),
      sources: {
        sandbox: sandbox.length,
        registered_marketplaces: 0,
        sdk_base: user?.skills.length ?? 0,
        org: 0,
        project: project?.skills.length ?? 0,
      },
    });
  });

  router.post('/sync', (_request, response) => {
    response.json({
      status: 'error',
      message: 'This agent server loads no public skills: there is nothing to refresh.',
    });
  });

  return router;
}

/** `SkillInfo` of the published API. */
function toSkillInfo(skill: Skill): Record<string, unknown> {
  const { name, content, source, description, trigger, isAgentSkill, isHidden } = skill;
  return {
    name,
    type: isAgentSkill ? 'agentskills' : trigger === null ? 'repo' : 'knowledge',
    content,
    triggers: trigger?.kind === 'words' ? trigger.words : [],
    source,
    description,
    is_agentskills_format: isAgentSkill,
    disable_model_invocation: isHidden,
  };
}

/** `/api/hooks`: what the repository has in its file of hooks. Our agents run none of them. */
export function hookRoutes(files: WorkspaceFiles): Router {
  const router = Router();
  router.post('/', async (request, response) => {
    const { project_dir: folder } = parseRequest(hooksSchema, 'body', request.body);
    response.json({ hook_config: folder ? await readHooks(files, absolutePath(folder)) : null });
  });
  return router;
}

async function readHooks(files: WorkspaceFiles, folder: string): Promise<unknown> {
  try {
    const text = (await files.read(`${folder}/.openhands/hooks.json`, MAX_HOOKS_BYTES)).toString('utf8');
    const hooks = parseJson(text);
    return typeof hooks === 'object' && !Array.isArray(hooks) ? hooks : null;
  } catch (error) {
    if (error instanceof WorkspaceFileError && error.failure !== 'outside') {
      return null;
    }
    return asHttpError(error);
  }
}

function programsSkill(urls: ExposedUrls): Skill[] {
  const lines = urls
    .filter(({ name }) => name.startsWith(PROGRAM_PORT))
    .map(({ url, port }) => `* ${url} (port ${port})`);
  const content = `A program that listens on one of these ports is reached by the user at its address:\n${lines.join('\n')}`;
  return lines.length === 0 ? [] : [toSkill({ name: 'work_hosts', content })];
}
