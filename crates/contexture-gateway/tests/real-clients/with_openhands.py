"""An agent of the OpenHands SDK: with_openhands.py MODEL TASK"""

import os
import sys

from openhands.sdk import LLM, Agent, Conversation, Tool
from openhands.tools.terminal import TerminalTool

model, task = sys.argv[1], sys.argv[2]
llm = LLM(usage_id="agent", model=model, base_url=os.environ["LLM_BASE_URL"], api_key=os.environ["LLM_API_KEY"])
agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)])
conversation = Conversation(agent=agent, workspace=os.getcwd())
conversation.send_message(task)
conversation.run()
