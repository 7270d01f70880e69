import { Text } from '../../../common/validation/text.decorator.js';

const LONGEST_PATH = 4096;

function pathProblem(path: string): string | null {
  return path.length > LONGEST_PATH ? `Expected at most ${LONGEST_PATH} characters.` : null;
}

/** Query of `GET /api/v1/app-conversations/{id}/file`. */
export class FileQueryDto {
  @Text({
    description: "Path of the file: absolute, or below the conversation's folder.",
    default: 'PLAN.md',
    example: 'PLAN.md',
    rule: pathProblem,
  })
  file_path?: string;
}

/** Query of the two routes about what git sees. */
export class GitQueryDto {
  @Text({
    required: true,
    description: "Path: absolute, or below the conversation's folder, which is `.`.",
    example: '.',
    rule: pathProblem,
  })
  path: string;

  @Text({
    description: 'What to compare with; by default where the branch left the remote.',
    example: 'main',
  })
  ref?: string;
}
