import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { Shown } from '../../../../common/openapi/responses.js';
import type { ConversationSkill, HookEvent } from '../../conversation-folder.service.js';
import { WorkspacePath } from './conversation-actions.dto.js';

export class FilesQueryDto {
  @WorkspacePath("Folder: absolute, or below the conversation's folder, which is the default.", {
    default: '.',
    example: '/workspace/project',
  })
  path?: string;
}

@ApiSchema({ name: 'SkillResponse' })
class SkillDto implements ConversationSkill {
  @ApiProperty({ example: 'release-notes' }) name: string;

  @Shown(
    'repo: always part of the prompt. knowledge: given to the agent with a message that has one of its words. agentskills: read by the agent when it needs it.',
    'knowledge',
    { enum: ['repo', 'knowledge', 'agentskills'] },
  )
  type: ConversationSkill['type'];

  @ApiProperty({ example: 'Write one line per change, the user first.' }) content: string;
  @ApiProperty({ type: [String], example: ['changelog'] }) triggers: string[];
}

@ApiSchema({ name: 'GetSkillsResponse' })
export class SkillsDto {
  @ApiProperty({ type: [SkillDto] }) skills: ConversationSkill[];
}

@ApiSchema({ name: 'HookDefinitionResponse' })
class HookDto {
  @ApiProperty({ example: 'command' }) type: string;
  @ApiProperty({ example: '.openhands/hooks/check.sh' }) command: string;
  @ApiProperty({ description: 'Seconds.', example: 60 }) timeout: number;
  @ApiProperty({ example: false }) async: boolean;
}

@ApiSchema({ name: 'HookMatcherResponse' })
class HookMatcherDto {
  @Shown('Which tools: `*`, a name or a pattern.', 'terminal') matcher: string;
  @ApiProperty({ type: [HookDto] }) hooks: HookDto[];
}

@ApiSchema({ name: 'HookEventResponse' })
class HookEventDto implements HookEvent {
  @ApiProperty({ example: 'pre_tool_use' }) event_type: string;
  @ApiProperty({ type: [HookMatcherDto] }) matchers: HookMatcherDto[];
}

@ApiSchema({ name: 'GetHooksResponse' })
export class HooksDto {
  @ApiProperty({ type: [HookEventDto] }) hooks: HookEvent[];
}
