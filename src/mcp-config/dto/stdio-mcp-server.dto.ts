import { ApiSchema } from '@nestjs/swagger';
import { TextList } from '../../common/validation/text-list.decorator.js';
import { TextMap } from '../../common/validation/text-map.decorator.js';
import { Text } from '../../common/validation/text.decorator.js';

const SERVER_NAME = /^[A-Za-z0-9_-]+$/;
const PROGRAM = /^\S+$/;
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A tool server started as a command inside the sandbox. Members it does not list are ignored. */
@ApiSchema({ name: 'MCPStdioServerConfig' })
export class StdioMcpServerDto {
  @Text({
    required: true,
    trim: true,
    description: 'Letters, digits, hyphens and underscores; unique in its list.',
    example: 'files',
    form: { pattern: SERVER_NAME.source },
    rule: (name) =>
      SERVER_NAME.test(name) ? null : 'Expected a name of letters, digits, hyphens and underscores.',
  })
  name: string;

  @Text({
    required: true,
    trim: true,
    description: 'The program alone; its arguments belong into `args`.',
    example: 'npx',
    form: { pattern: PROGRAM.source },
    rule: (command) =>
      PROGRAM.test(command) ? null : 'Expected one program without white space; arguments belong into args.',
  })
  command: string;

  @TextList({
    nullIsAbsent: true,
    description: 'Arguments, one string each; shown in clear.',
    example: ['-y', '@modelcontextprotocol/server-filesystem', '/workspace'],
  })
  args?: string[];

  @TextMap({
    nullIsAbsent: true,
    description:
      'Environment variables. Values are shown as `**********`, and that mask sent back for the same server and variable keeps the stored value.',
    example: { API_TOKEN: 'token-example' },
    keySchema: { pattern: VARIABLE_NAME.source },
    keyRule: (name) =>
      VARIABLE_NAME.test(name)
        ? null
        : 'Expected a variable name: a letter or underscore, then letters, digits and underscores.',
  })
  env?: Map<string, string>;
}
